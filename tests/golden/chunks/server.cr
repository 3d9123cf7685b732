require "http/server"

# Answers over HTTP, one fiber a request.
module Answer
  VERSION = "1.0"

  # What went wrong, in words that may be shown to the reader of a page.
  class Failure < Exception
    getter status : Int32

    def initialize(message, @status = 500)
      super(message)
    end
  end

  macro route(path, method)
    ROUTES[{{path}}] = ->{{method}}
  end

  class Server
    def initialize(@port : Int32)
      @server = HTTP::Server.new do |context|
        handle(context)
      end
    end

    # Finds the handler of a path and lets it answer. A failure that a handler raises on purpose becomes
    # an answer with its status; anything else is a bug, and is logged with its trace.
    def handle(context)
      handler = ROUTES[context.request.path]?
      raise Failure.new("no such page", 404) unless handler
      context.response.print handler.call(context.request)
    rescue failure : Failure
      context.response.status_code = failure.status
      context.response.print failure.message
    rescue bug
      Log.error(exception: bug) { "while answering #{context.request.path}" }
      context.response.status_code = 500
    end

    def listen : Nil
      @server.bind_tcp(@port)
      @server.listen
    end
  end
end
