-- Version 4. fx_vec_chunk, fx_vec_embedding and fx_vec_state are read by other tools: their names and columns stay.
-- docs/formats.md explains every column.
CREATE TABLE fx_vec_meta(
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE fx_vec_chunk(
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL,
  kind TEXT NOT NULL,
  path TEXT,
  seq INTEGER NOT NULL,
  text TEXT NOT NULL,
  project TEXT NOT NULL DEFAULT '',
  part TEXT NOT NULL DEFAULT '',
  name TEXT,
  first_line INTEGER NOT NULL DEFAULT 1,
  last_line INTEGER NOT NULL DEFAULT 1,
  cell INTEGER,
  cell_id TEXT,
  digest BLOB,
  start_s REAL,
  end_s REAL,
  uri TEXT,
  transcript TEXT,
  checksum INTEGER,
  UNIQUE(project, hash, seq)
);
CREATE INDEX fx_vec_chunk_digest ON fx_vec_chunk(digest);

CREATE TABLE fx_vec_embedding(
  chunk_id INTEGER NOT NULL REFERENCES fx_vec_chunk(id),
  model TEXT NOT NULL,
  dim INTEGER NOT NULL,
  v BLOB NOT NULL,
  checksum INTEGER,
  PRIMARY KEY(chunk_id, model, dim)
);

CREATE TABLE fx_vec_state(
  model TEXT NOT NULL,
  dim INTEGER NOT NULL,
  last_ckout TEXT
);

CREATE TABLE fx_vec_artifact(
  project TEXT NOT NULL DEFAULT '',
  hash TEXT NOT NULL,
  version TEXT NOT NULL,
  recipe TEXT NOT NULL,
  skip TEXT,
  detail TEXT NOT NULL DEFAULT '',
  parts TEXT NOT NULL DEFAULT '',
  paths TEXT NOT NULL DEFAULT '',
  PRIMARY KEY(project, hash)
) WITHOUT ROWID;

CREATE TABLE fx_vec_member(
  worktree TEXT NOT NULL,
  corpus TEXT NOT NULL,
  builder TEXT NOT NULL,
  project TEXT NOT NULL DEFAULT '',
  hash TEXT NOT NULL,
  part TEXT NOT NULL DEFAULT '',
  path TEXT NOT NULL DEFAULT '',
  kind TEXT NOT NULL,
  PRIMARY KEY(project, hash, part, worktree, corpus, builder, path)
) WITHOUT ROWID;
CREATE INDEX fx_vec_member_view ON fx_vec_member(worktree, corpus);

CREATE TABLE fx_vec_file(
  worktree TEXT NOT NULL,
  path TEXT NOT NULL,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY(worktree, path)
) WITHOUT ROWID;

CREATE TABLE fx_vec_skip(
  worktree TEXT NOT NULL,
  path TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT '',
  hash TEXT NOT NULL DEFAULT '',
  PRIMARY KEY(worktree, path, reason)
) WITHOUT ROWID;

CREATE TABLE fx_vec_built(
  worktree TEXT NOT NULL,
  builder TEXT NOT NULL,
  revision TEXT NOT NULL,
  PRIMARY KEY(worktree, builder)
) WITHOUT ROWID;

CREATE TABLE fx_vec_record(
  corpus TEXT NOT NULL,
  id TEXT NOT NULL,
  project TEXT NOT NULL DEFAULT '',
  hash TEXT NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY(corpus, id)
) WITHOUT ROWID;
CREATE INDEX fx_vec_record_hash ON fx_vec_record(project, hash);

CREATE TABLE fx_vec_project(
  project TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  peer TEXT NOT NULL,
  item TEXT NOT NULL DEFAULT '',
  kind TEXT,
  paths TEXT NOT NULL DEFAULT '',
  revision TEXT NOT NULL,
  model TEXT NOT NULL,
  dim INTEGER NOT NULL,
  imported REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE fx_vec_refused(
  digest BLOB NOT NULL,
  model TEXT NOT NULL,
  dim INTEGER NOT NULL,
  reason TEXT NOT NULL,
  tried REAL NOT NULL,
  PRIMARY KEY(digest, model, dim)
) WITHOUT ROWID;

-- Terms come split and folded from terms.py; porter takes the English endings off, on both sides.
CREATE VIRTUAL TABLE fx_vec_terms USING fts5(name, path, body, tokenize = 'porter unicode61 remove_diacritics 0');

-- The same for commits: apart, so that they change no statistics of the others.
CREATE VIRTUAL TABLE fx_vec_commit_terms USING fts5(
  name, path, body, tokenize = 'porter unicode61 remove_diacritics 0'
);
