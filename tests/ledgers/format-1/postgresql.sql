


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
    "time" double precision,
    digest text NOT NULL
);



CREATE TABLE thresholdout.guards (
    id integer NOT NULL,
    identity text NOT NULL,
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



INSERT INTO thresholdout.documents VALUES (1, 'holdout/content', 'sealed:1:W6AMXdRODrITLX6HGL9SGW5fW2WRVnIYYd4DIG/WE18+J6+LKmEChQUosWPI8o1p+ScwwpohYM2sCC7Fo5hjSgJf+IcMhJqaJP+bkRmwaUG3IIUy6INKwhd3pbo=');
INSERT INTO thresholdout.documents VALUES (1, 'holdout/order', 'sealed:1:zt/q6HdGsEZA8NHPOyYQmUm+IR6sayFAj4WNy4V3fP5KTGcQnmC5RD8Zlx+5rx62tFeigL4thcT9XrUuPHWDbqhp9qYV9tP0Tr/GOaJs3a57A5G2f8XFoF/kKTQ=');



INSERT INTO thresholdout.entries VALUES (1, 1, 'a', 'both agree', 0.5, 0.5, 0.3359338301059747, 0.6640661698940254, 'train', 4, 0, 1, NULL, NULL, '', '', 1795485070.5928304, '73ed4cf8af76499427a2144ca840016dc59e13c5b90b2376005f22cb5210d27c');
INSERT INTO thresholdout.entries VALUES (1, 2, 'b', 'größer', 1, 0.27084056551271374, 0.12380474068548893, 0.43716119654485946, 'holdout', 3, 0, 1, NULL, NULL, '', '', 1795485070.5955827, '1a1f18a0c89decb21fa8a32283ee251a31fdb3d66cd3230bc4b8be862dcc98c0');
INSERT INTO thresholdout.entries VALUES (1, 3, 'c', '=1+1', 0, 0.7599312433890848, 0.5945171946540821, 0.9036327922047575, 'holdout', 2, 0, 1, NULL, NULL, '', '', 1795485070.5972805, 'bc72b756fe34b78b650023229ea18fd8e6a63f7773c6f22c7666ba225bf270b4');



INSERT INTO thresholdout.guards VALUES (1, 'e4301270dabd27f365afb6d45ad193d7', '92273bbd4ce514208aa92a4be5c53253aaadeb3db7ad68714ed7627419271831', 'sealed:1:rtw6FFXuTr/jeErLIRI1aovIGywAfuDCHzsRLqWR196o/sw/c6ASnip+LeTYj5/aiTExf/7Xw/NVoPoSgg==', '{"rules": 1, "declared": {"queries": 1000, "budget": 10, "confidence": 0.95, "at_most": null, "private": null, "threshold": null, "noise_scale": null, "grid": null, "mechanism": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}, "identically_distributed": false, "given": null, "final_check": false, "dependence": "305e30f7ffefd4b5129bd4f4dd7ee432e34372bcab70b3e4d214aa2751281f62", "for_release": true}, "chosen": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}}', 3, 'bc72b756fe34b78b650023229ea18fd8e6a63f7773c6f22c7666ba225bf270b4', NULL);



INSERT INTO thresholdout.settings VALUES ('format', '1');
INSERT INTO thresholdout.settings VALUES ('seal', 'sealed:1:MA0t6RQ7T/ukPjNdUrhK+/DSFMvVydO31iXlSkrKzW/yuRG99UH3pQ==');
INSERT INTO thresholdout.settings VALUES ('secret', 'sealed:1:O40B8fjyH3HvJqiOySnRK/HdgnEnl4KHR57NxH0vPNtqYUsZOVfAyHiFtxfIAF2I5OR+u+t9Ign4nUs5LJ0ihQpx9/7rm/9YiY/HRW3u2Z6+mU7zRIbkbYiR+FE=');
INSERT INTO thresholdout.settings VALUES ('identity', '0ba340dee1e4a1f965c024ce40117a05');



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



CREATE INDEX entries_asker ON thresholdout.entries USING btree (guard, md5(asker), query, "time");



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



CREATE TRIGGER guards_update BEFORE UPDATE OF id, identity, content, parameters ON thresholdout.guards FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('what a guard is never changes');



ALTER TABLE ONLY thresholdout.documents
    ADD CONSTRAINT documents_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);



ALTER TABLE ONLY thresholdout.entries
    ADD CONSTRAINT entries_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);




