-- Tables for fluxplain's records, which Kafka Connect fills: psql --file tables.sql DATABASE
-- Needs PostgreSQL 15 or newer. Columns are computed from `record`: add those that you query often.

BEGIN;

CREATE SCHEMA fluxplain;

-- Connect writes each message here, as it is. The trigger below moves it: this table stays empty.
CREATE TABLE fluxplain.incoming (topic text NOT NULL, record text);

CREATE TABLE fluxplain.predictions (
  received timestamptz NOT NULL DEFAULT now(),
  incarnation text GENERATED ALWAYS AS (record->>'incarnation') STORED,
  stream text GENERATED ALWAYS AS (record->>'stream') STORED,
  seq bigint GENERATED ALWAYS AS ((record->>'seq')::bigint) STORED,
  ts text GENERATED ALWAYS AS (record->>'ts') STORED,
  id text GENERATED ALWAYS AS (record->>'id') STORED,
  prediction text GENERATED ALWAYS AS (record->>'prediction') STORED,
  y text GENERATED ALWAYS AS (record->>'y') STORED,
  loss double precision GENERATED ALWAYS AS ((record->>'loss')::double precision) STORED,
  record jsonb NOT NULL,
  PRIMARY KEY (stream, seq, incarnation)
);

CREATE TABLE fluxplain.reasons (
  received timestamptz NOT NULL DEFAULT now(),
  incarnation text NOT NULL GENERATED ALWAYS AS (record->>'incarnation') STORED,
  stream text NOT NULL GENERATED ALWAYS AS (record->>'stream') STORED,
  seq bigint NOT NULL GENERATED ALWAYS AS ((record->>'seq')::bigint) STORED,
  ts text GENERATED ALWAYS AS (record->>'ts') STORED,
  id text GENERATED ALWAYS AS (record->>'id') STORED,
  label text GENERATED ALWAYS AS (record->>'label') STORED,
  output double precision GENERATED ALWAYS AS ((record->>'output')::double precision) STORED,
  base double precision GENERATED ALWAYS AS ((record->>'base')::double precision) STORED,
  record jsonb NOT NULL,
  UNIQUE NULLS NOT DISTINCT (stream, seq, label, incarnation)
);

CREATE TABLE fluxplain.explanations (
  received timestamptz NOT NULL DEFAULT now(),
  incarnation text GENERATED ALWAYS AS (record->>'incarnation') STORED,
  stream text GENERATED ALWAYS AS (record->>'stream') STORED,
  method text GENERATED ALWAYS AS (record->>'method') STORED,
  feature text GENERATED ALWAYS AS (record->>'feature') STORED,
  alpha double precision GENERATED ALWAYS AS ((record->>'alpha')::double precision) STORED,
  seq bigint GENERATED ALWAYS AS ((record->>'seq')::bigint) STORED,
  ts text GENERATED ALWAYS AS (record->>'ts') STORED,
  value double precision GENERATED ALWAYS AS ((record->>'value')::double precision) STORED,
  std_error double precision GENERATED ALWAYS AS ((record->>'std_error')::double precision) STORED,
  record jsonb NOT NULL,
  PRIMARY KEY (stream, method, feature, alpha, seq, incarnation)
);

CREATE TABLE fluxplain.changes (
  received timestamptz NOT NULL DEFAULT now(),
  id text GENERATED ALWAYS AS (record->>'id') STORED PRIMARY KEY,
  incarnation text GENERATED ALWAYS AS (record->>'incarnation') STORED,
  stream text GENERATED ALWAYS AS (record->>'stream') STORED,
  kind text GENERATED ALWAYS AS (record->>'kind') STORED,
  method text GENERATED ALWAYS AS (record->>'method') STORED,
  feature text GENERATED ALWAYS AS (record->>'feature') STORED,
  seq bigint GENERATED ALWAYS AS ((record->>'seq')::bigint) STORED,
  ts text GENERATED ALWAYS AS (record->>'ts') STORED,
  status text GENERATED ALWAYS AS (record->>'status') STORED,
  before double precision GENERATED ALWAYS AS ((record->>'before')::double precision) STORED,
  after double precision GENERATED ALWAYS AS ((record->>'after')::double precision) STORED,
  effect_size double precision GENERATED ALWAYS AS ((record->>'effect_size')::double precision) STORED,
  detail text GENERATED ALWAYS AS (record->>'detail') STORED,
  record jsonb NOT NULL
);

-- Messages that are no such records, with the reason. One of them must not stop all others.
CREATE TABLE fluxplain.rejected (
  received timestamptz NOT NULL DEFAULT now(),
  topic text NOT NULL,
  record text,
  reason text NOT NULL
);

-- As the tables' owner: Connect's role needs no other right than INSERT on fluxplain.incoming.
CREATE FUNCTION fluxplain.move() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moved jsonb;
BEGIN
  moved := NEW.record::jsonb;
  CASE substring(NEW.topic FROM '[^.]*$')
    WHEN 'predictions' THEN
      INSERT INTO fluxplain.predictions (record) VALUES (moved) ON CONFLICT DO NOTHING;
    WHEN 'reasons' THEN
      INSERT INTO fluxplain.reasons (record) VALUES (moved) ON CONFLICT DO NOTHING;
    WHEN 'explanations' THEN
      INSERT INTO fluxplain.explanations (record) VALUES (moved) ON CONFLICT DO NOTHING;
    WHEN 'changes' THEN
      -- its second record has the outcome; the first one may come again after it
      INSERT INTO fluxplain.changes AS known (record) VALUES (moved) ON CONFLICT (id)
      DO UPDATE SET record = excluded.record
      WHERE known.status = 'noticed' AND excluded.status <> 'noticed';
  END CASE;
  RETURN NULL;
EXCEPTION WHEN data_exception OR integrity_constraint_violation OR case_not_found
  OR program_limit_exceeded THEN
  INSERT INTO fluxplain.rejected (topic, record, reason) VALUES (NEW.topic, NEW.record, SQLERRM);
  RETURN NULL;
END
$$;

CREATE TRIGGER move BEFORE INSERT ON fluxplain.incoming
FOR EACH ROW EXECUTE FUNCTION fluxplain.move();

COMMIT;
