


SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;


CREATE SCHEMA thresholdout;



CREATE FUNCTION thresholdout.ledger_refuses() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation'; END $$;


SET default_tablespace = '';

SET default_table_access_method = heap;


CREATE TABLE thresholdout.documents (
    guard integer NOT NULL,
    name text NOT NULL,
    text text NOT NULL
);



CREATE TABLE thresholdout.entries (
    guard integer NOT NULL,
    query bigint NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    train double precision NOT NULL,
    value double precision NOT NULL,
    low double precision NOT NULL,
    high double precision NOT NULL,
    source text NOT NULL,
    remaining bigint,
    lower double precision NOT NULL,
    upper double precision NOT NULL,
    risk double precision,
    list bigint,
    candidate text NOT NULL,
    asker text NOT NULL,
    digest text NOT NULL
);



CREATE TABLE thresholdout.guards (
    id integer NOT NULL,
    identity text NOT NULL,
    owner text NOT NULL,
    content text,
    state text NOT NULL,
    parameters text NOT NULL,
    asked bigint NOT NULL,
    head text NOT NULL,
    retired text
);



CREATE SEQUENCE thresholdout.guards_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;



ALTER SEQUENCE thresholdout.guards_id_seq OWNED BY thresholdout.guards.id;



CREATE TABLE thresholdout.settings (
    name text NOT NULL,
    value text NOT NULL
);



ALTER TABLE ONLY thresholdout.guards ALTER COLUMN id SET DEFAULT nextval('thresholdout.guards_id_seq'::regclass);



INSERT INTO thresholdout.documents VALUES (1, 'holdout/content', 'c2775dc07aa469a5c75b25d7b346d2d707980d476fedda9edf5f360447c11c1c');
INSERT INTO thresholdout.documents VALUES (1, 'holdout/order', '3921ac0a24f4fde3232ade6a257efe53e8e2d331395f07085c019476bde51ea1');



INSERT INTO thresholdout.entries VALUES (1, 1, 'a', 'both agree', 0.5, 0.5, 0.332692228708096, 0.667307771291904, 'train', 4, 0, 1, NULL, NULL, '', '', 'cb2857ada305ae86f4417894c0e809f18bba8cf9fca688db34ef5573a94c6e84');
INSERT INTO thresholdout.entries VALUES (1, 2, 'b', 'größer', 1, 0.2597143357613483, 0.09240656446944431, 0.4270221070532523, 'holdout', 3, 0, 1, NULL, NULL, '', '', 'ebb223d8f809d56b332cacbf5a355f0313dbba88f62acfa5062ab20f4ba76a0f');
INSERT INTO thresholdout.entries VALUES (1, 3, 'c', '=1+1', 0, 0.7466598495880383, 0.5793520782961343, 0.9139676208799423, 'holdout', 2, 0, 1, NULL, NULL, '', '', 'f54ff7fc4ea1d9a6d81e583edf10b7d50c966d0c50abba9617dd0f80aca3206d');



INSERT INTO thresholdout.guards VALUES (1, 'd0f6ad60f1c8650eccfa78d9dcbf3bc3', '', 'f82b65537eb26d635f128ec001fd5965c450c6fba9ced057878cc4d392c9942f', 'thresholdout/1 56088938850728 2 3', '{"rules": 1, "declared": {"queries": 1000, "budget": 10, "confidence": 0.95, "threshold": null, "noise_scale": null, "grid": null, "mechanism": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}, "dependence": "305e30f7ffefd4b5129bd4f4dd7ee432e34372bcab70b3e4d214aa2751281f62", "for_release": true}, "chosen": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}}', 3, 'f54ff7fc4ea1d9a6d81e583edf10b7d50c966d0c50abba9617dd0f80aca3206d', NULL);



INSERT INTO thresholdout.settings VALUES ('format', '1');
INSERT INTO thresholdout.settings VALUES ('secret', 'c7391dc4a68b1c2de81396d2861a057462a5fb9eaa0ffb96f12246b7c77f3f85');



SELECT pg_catalog.setval('thresholdout.guards_id_seq', 1, true);



ALTER TABLE ONLY thresholdout.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (guard, name);



ALTER TABLE ONLY thresholdout.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (guard, query);



ALTER TABLE ONLY thresholdout.guards
    ADD CONSTRAINT guards_content_key UNIQUE (content);



ALTER TABLE ONLY thresholdout.guards
    ADD CONSTRAINT guards_identity_key UNIQUE (identity);



ALTER TABLE ONLY thresholdout.guards
    ADD CONSTRAINT guards_pkey PRIMARY KEY (id);



ALTER TABLE ONLY thresholdout.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (name);



CREATE UNIQUE INDEX entries_key ON thresholdout.entries USING btree (guard, md5(key));



CREATE TRIGGER documents_delete BEFORE DELETE ON thresholdout.documents FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('documents of a ledger are never deleted');



CREATE TRIGGER documents_truncate BEFORE TRUNCATE ON thresholdout.documents FOR EACH STATEMENT EXECUTE FUNCTION thresholdout.ledger_refuses('documents of a ledger are never deleted');



CREATE TRIGGER documents_update BEFORE UPDATE ON thresholdout.documents FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('documents of a ledger never change');



CREATE TRIGGER entries_delete BEFORE DELETE ON thresholdout.entries FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('entries of a ledger are never deleted');



CREATE TRIGGER entries_truncate BEFORE TRUNCATE ON thresholdout.entries FOR EACH STATEMENT EXECUTE FUNCTION thresholdout.ledger_refuses('entries of a ledger are never deleted');



CREATE TRIGGER entries_update BEFORE UPDATE ON thresholdout.entries FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('entries of a ledger never change');



CREATE TRIGGER guards_delete BEFORE DELETE ON thresholdout.guards FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('guards of a ledger are never deleted');



CREATE TRIGGER guards_retired BEFORE UPDATE OF retired ON thresholdout.guards FOR EACH ROW WHEN ((old.retired IS NOT NULL)) EXECUTE FUNCTION thresholdout.ledger_refuses('a guard that was retired stays so');



CREATE TRIGGER guards_truncate BEFORE TRUNCATE ON thresholdout.guards FOR EACH STATEMENT EXECUTE FUNCTION thresholdout.ledger_refuses('guards of a ledger are never deleted');



CREATE TRIGGER guards_update BEFORE UPDATE OF id, identity, owner, content, parameters ON thresholdout.guards FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('what a guard is never changes');



ALTER TABLE ONLY thresholdout.documents
    ADD CONSTRAINT documents_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);



ALTER TABLE ONLY thresholdout.entries
    ADD CONSTRAINT entries_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);




