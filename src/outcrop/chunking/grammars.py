"""Which nodes of a parse tree are definitions: one tree-sitter query per language.

Captures: ``@def`` is a definition and ``@name`` what it is called; ``@owner`` is a type named outside of it (a Go
receiver); ``@end`` is a sibling that still belongs to it (a body); ``@value`` is a definition if it is longer than one
line (a table of constants); ``@lead`` is a comment, decorator or attribute: it
belongs to the definition directly below. A definition inside another is a candidate for a cut when the outer one is too
long, nothing more, so it does no harm to name too many.
"""

from __future__ import annotations


def named(types: str, name: str = "name: (_)", rest: str = "") -> str:
    """Patterns for node types whose name is found in the same way.

    Args:
        types: Node types, divided by spaces.
        name: The part of the pattern that is the name.
        rest: What else the node must have.
    """
    return "\n".join(f"({one} {name} @name {rest}) @def" for one in types.split())


def unnamed(types: str) -> str:
    """Patterns for node types that are a unit but have no name of their own."""
    return "\n".join(f"({one}) @def" for one in types.split())


def leads(types: str) -> str:
    """Patterns for what stands above a definition and belongs to it."""
    return "\n".join(f"({one}) @lead" for one in types.split())


_FUNCTION_VALUE = "[(arrow_function) (function_expression) (generator_function) (class)]"

_JAVASCRIPT = f"""
{named("function_declaration generator_function_declaration class_declaration method_definition")}
(lexical_declaration (variable_declarator name: (_) @name value: {_FUNCTION_VALUE})) @def
(variable_declaration (variable_declarator name: (_) @name value: {_FUNCTION_VALUE})) @def
(expression_statement (assignment_expression left: (_) @name right: {_FUNCTION_VALUE})) @def
(pair key: (_) @name value: {_FUNCTION_VALUE}) @def
(program (lexical_declaration (variable_declarator name: (_) @name)) @value)
(export_statement (lexical_declaration (variable_declarator name: (_) @name))) @value
(expression_statement (call_expression function: [(identifier) (member_expression)] @call
  arguments: (arguments . [(string) (template_string)] @name [(arrow_function) (function_expression)]))
  (#match? @call "^(describe|it|test|suite|context|bench)(\\\\.[a-z]+)?$")) @def
{leads("comment decorator")}
"""

_TYPESCRIPT = f"""
{
    named(
        "interface_declaration enum_declaration type_alias_declaration abstract_class_declaration internal_module "
        "module function_signature method_signature abstract_method_signature"
    )
}
(public_field_definition name: (_) @name value: {_FUNCTION_VALUE}) @def
{_JAVASCRIPT}
"""

_C = f"""
{named("function_definition", "declarator: (_)")}
{named("struct_specifier enum_specifier union_specifier", rest="body: (_)")}
(type_definition type: [(struct_specifier) (enum_specifier) (union_specifier)] declarator: (_) @name) @def
{named("preproc_function_def")}
(translation_unit (declaration declarator: (init_declarator declarator: (_) @name)) @value)
{leads("comment")}
"""

_CPP = f"""
{named("namespace_definition concept_definition alias_declaration")}
{named("class_specifier", rest="body: (_)")}
(template_declaration [
  (class_specifier name: (_) @name) (struct_specifier name: (_) @name) (function_definition declarator: (_) @name)
  (alias_declaration name: (_) @name) (concept_definition name: (_) @name)]) @def
(declaration (init_declarator declarator: (_) @name value: (lambda_expression))) @def
{_C}
"""

_CSS = f"""
{named("rule_set", "(selectors)")}
{named("keyframes_statement", "(keyframes_name)")}
{unnamed("media_statement supports_statement")}
{leads("comment")}
"""

_LISP = """
((list_lit . (sym_lit) @kind . (sym_lit name: (_) @name)) (#match? @kind "^(def|ns$)")) @def
(comment) @lead
"""

_SCHEME = """
((list . (symbol) @kind . [(symbol) (list . (symbol))] @name) (#match? @kind "^(define|struct|module)")) @def
(comment) @lead
"""

_OCAML = f"""
(module_definition (module_binding (module_name) @name)) @def
(module_type_definition (module_type_name) @name) @def
(type_definition . (type_binding name: (_) @name)) @def
(class_definition (class_binding (class_name) @name)) @def
(method_definition (method_name) @name) @def
(value_specification (value_name) @name) @def
(exception_definition (constructor_declaration (constructor_name) @name)) @def
(external (value_name) @name) @def
{leads("comment attribute")}
"""

# D is missing on purpose: its bundled grammar takes the process down on some texts. Perl is, because it is slow.
# By the name that the grammar has in ``tree_sitter_language_pack``.
QUERIES: dict[str, str] = {
    "python": f"""
        {named("function_definition class_definition")}
        (module (assignment left: (_) @name) @value)
        {leads("comment decorator")}""",
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": f"""
        {named("function_declaration")}
        (method_declaration receiver: (_) @owner name: (_) @name) @def
        (type_declaration . (type_spec name: (_) @name)) @def
        (type_declaration . (type_alias name: (_) @name)) @def
        (var_declaration (var_spec name: (_) @name)) @value
        {leads("comment")}""",
    "rust": f"""
        {
        named(
            "function_item struct_item enum_item union_item trait_item mod_item macro_definition type_item "
            "function_signature_item"
        )
    }
        (impl_item type: (_) @name) @def
        (const_item name: (_) @name) @value
        (static_item name: (_) @name) @value
        {leads("line_comment block_comment attribute_item inner_attribute_item")}""",
    "java": f"""
        {
        named(
            "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
            "method_declaration constructor_declaration compact_constructor_declaration"
        )
    }
        {unnamed("static_initializer")}
        {leads("line_comment block_comment")}""",
    "c": _C,
    "cpp": _CPP,
    "csharp": f"""
        {
        named(
            "namespace_declaration class_declaration interface_declaration struct_declaration enum_declaration "
            "record_declaration delegate_declaration method_declaration constructor_declaration "
            "destructor_declaration property_declaration event_declaration local_function_statement"
        )
    }
        (operator_declaration operator: (_) @name) @def
        {unnamed("indexer_declaration conversion_operator_declaration")}
        {leads("comment attribute_list preproc_region")}""",
    "ruby": f"""
        {named("class module method")}
        (singleton_method object: (_) @owner name: (_) @name) @def
        {unnamed("singleton_class")}
        (call method: (identifier) @call arguments: (argument_list . (_) @name) block: (_)
          (#match? @call "^(describe|context|it|specify|test|namespace|task|shared_examples|feature|scenario)$")) @def
        (call receiver: (_) @name method: (identifier) @call block: (_) (#match? @call "^(class|module)_eval$")) @def
        (assignment left: (constant) @name) @value
        {leads("comment")}""",
    "php": f"""
        {
        named(
            "class_declaration interface_declaration trait_declaration enum_declaration method_declaration "
            "function_definition"
        )
    }
        (namespace_definition name: (_) @name body: (_)) @def
        {leads("comment attribute_list")}""",
    "kotlin": f"""
        (class_declaration (type_identifier) @name) @def
        (object_declaration (type_identifier) @name) @def
        (function_declaration (simple_identifier) @name) @def
        (property_declaration (variable_declaration (simple_identifier) @name)) @def
        (type_alias . (type_identifier) @name) @def
        {unnamed("companion_object secondary_constructor anonymous_initializer")}
        {leads("line_comment multiline_comment")}""",
    "swift": f"""
        {
        named(
            "class_declaration protocol_declaration function_declaration protocol_function_declaration "
            "typealias_declaration"
        )
    }
        (property_declaration name: (_) @name computed_value: (_)) @def
        (init_declaration "init" @name) @def
        (deinit_declaration "deinit" @name) @def
        (subscript_declaration "subscript" @name) @def
        {leads("comment multiline_comment")}""",
    "scala": f"""
        {
        named(
            "class_definition object_definition trait_definition enum_definition function_definition "
            "function_declaration type_definition"
        )
    }
        {unnamed("given_definition extension_definition")}
        (val_definition pattern: (_) @name) @value
        {leads("comment block_comment annotation")}""",
    "lua": f"""
        {named("function_declaration")}
        (assignment_statement (variable_list . (_) @name) (expression_list . (function_definition))) @def
        {leads("comment")}""",
    "bash": f"{named('function_definition')}\n{leads('comment')}",
    "sql": f"""
        {
        named(
            "create_table create_function create_view create_materialized_view create_trigger create_type "
            "create_sequence alter_table",
            "(object_reference)",
        )
    }
        (create_index column: (_) @name) @def
        (create_schema (identifier) @name) @def
        {leads("comment marginalia")}""",
    "css": _CSS,
    "scss": f"{_CSS}\n{named('mixin_statement function_statement')}",
    "haskell": f"""
        (declarations [(function name: (_) @name) (signature name: (_) @name) (bind name: (_) @name)] @def)
        (class_declarations [(function name: (_) @name) (signature name: (_) @name)] @def)
        (instance_declarations [(function name: (_) @name) (bind name: (_) @name)] @def)
        {named("data_type newtype class type_synomym")}
        (instance name: (_) @owner patterns: (_) @name) @def
        {leads("comment haddock pragma")}""",
    "ocaml": f"""
        (structure (value_definition . (let_binding pattern: (_) @name)) @def)
        (compilation_unit (value_definition . (let_binding pattern: (_) @name)) @def)
        {_OCAML}""",
    "ocaml_interface": _OCAML,
    "elixir": """
        (call target: (identifier) @call (arguments . (_) @name)
          (#match? @call "^(defp?|defmacrop?|defmodule|defprotocol|defimpl|defdelegate|defguardp?|test|describe)$")
        ) @def
        (comment) @lead
        (unary_operator operator: "@" operand: (call target: (identifier) @at)
          (#match? @at "^(doc|spec|impl|deprecated|since|tag)$")) @lead""",
    "zig": f"""
        (Decl (FnProto function: (_) @name)) @def
        (Decl (VarDecl variable_type_function: (_) @name)) @def
        (TestDecl (_) @name (Block)) @def
        {leads("doc_comment line_comment")}""",
    "dart": f"""
        {named("class_definition extension_declaration enum_declaration")}
        (mixin_declaration (identifier) @name) @def
        ((function_signature name: (_) @name) @def . (function_body) @end)
        ((method_signature (_ name: (_) @name)) @def . (function_body) @end)
        {leads("documentation_comment comment annotation")}""",
    "erlang": f"""
        (fun_decl clause: (function_clause name: (_) @name)) @def
        {named("record_decl")}
        {leads("comment spec")}""",
    "clojure": _LISP,
    "scheme": _SCHEME,
    "racket": _SCHEME,
    "elm": f"""
        (value_declaration functionDeclarationLeft: (_ . (_) @name)) @def
        {named("type_annotation type_declaration type_alias_declaration")}
        {leads("block_comment line_comment")}""",
    "julia": f"""
        {named("module_definition")}
        {named("function_definition macro_definition", "(signature)")}
        {named("struct_definition abstract_definition", "(type_head)")}
        (assignment . (call_expression) @name) @def
        {leads("line_comment block_comment string_literal")}""",
    "r": f"""
        (binary_operator lhs: (_) @name rhs: (function_definition)) @def
        (call function: (identifier) @call arguments: (arguments . (argument value: (string) @name))
          (#match? @call "^(setClass|setMethod|setGeneric|setRefClass|test_that|describe)$")) @def
        {leads("comment")}""",
    "fortran": f"""
        (module (module_statement (name) @name)) @def
        (submodule (submodule_statement (name) @name)) @def
        (program (program_statement (name) @name)) @def
        (subroutine (subroutine_statement name: (_) @name)) @def
        (function (function_statement name: (_) @name)) @def
        (derived_type_definition (derived_type_statement (type_name) @name)) @def
        {leads("comment")}""",
    "powershell": f"""
        (function_statement (function_name) @name) @def
        (class_statement . (simple_name) @name) @def
        (class_method_definition (simple_name) @name) @def
        {leads("comment")}""",
    "objc": f"""
        {named("class_interface class_implementation protocol_declaration", ". (identifier)")}
        {named("method_definition", "(identifier)")}
        {_C}""",
    "fsharp": f"""
        (function_or_value_defn (function_declaration_left . (_) @name)) @def
        (function_or_value_defn (value_declaration_left . (_) @name)) @def
        (type_definition (_ (type_name type_name: (_) @name))) @def
        (member_defn (method_or_prop_defn name: (_) @name)) @def
        {leads("line_comment block_comment attributes")}""",
    "matlab": f"{named('function_definition class_definition')}\n{leads('comment')}",
    "gdscript": f"{named('function_definition class_definition')}\n{leads('comment annotation')}",
    "fish": f"{named('function_definition')}\n{leads('comment')}",
    "gleam": f"{named('function')}\n{named('type_definition', '(type_name)')}\n{leads('comment statement_comment')}",
    "solidity": f"""
        {
        named(
            "contract_declaration interface_declaration library_declaration function_definition modifier_definition "
            "struct_declaration enum_declaration"
        )
    }
        {leads("comment")}""",
    "elisp": f"{named('function_definition macro_definition')}\n{leads('comment')}",
    "commonlisp": """
        (defun (defun_header function_name: (_) @name)) @def
        ((list_lit . (sym_lit) @kind . (_) @name) (#match? @kind "^def")) @def
        (comment) @lead""",
    "proto": f"""
        (message (message_name) @name) @def
        (service (service_name) @name) @def
        (enum (enum_name) @name) @def
        {leads("comment")}""",
    "thrift": f"{named('struct_definition service_definition enum_definition', '(identifier)')}\n{leads('comment')}",
    "hcl": f"""
        (body (block (identifier) @owner . [(string_lit) (identifier)]* @name . (block_start)) @def)
        {leads("comment")}""",
    "cmake": f"""
        (function_def (function_command (argument_list . (_) @name))) @def
        (macro_def (macro_command (argument_list . (_) @name))) @def
        {leads("line_comment bracket_comment")}""",
    "make": f"(rule (targets) @name) @def\n{leads('comment')}",
    "nix": f"{named('binding', '(attrpath)')}\n{leads('comment')}",
    "json": named("pair", "key: (_)"),
    "toml": f"""
        (table . (_) @name) @def
        (table_array_element . (_) @name) @def
        {leads("comment")}""",
    "yaml": f"{named('block_mapping_pair', 'key: (_)')}\n{leads('comment')}",
}
