


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
    client text NOT NULL,
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
    checkpoint text NOT NULL,
    closed text
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



INSERT INTO thresholdout.documents VALUES (1, 'holdout/content', 'encrypted:1:jg0AIZOHV+9qzYlXa6SHPyvlfAQ9fctPOQqQB9TL6c9cwDXrbsVSVvj0j2RnLDqUls38YSdruUaU/hj5lAOXhvfMh8oIJE345pMTk9BuY6AZFJVRCOPdt4OxJ7I=');
INSERT INTO thresholdout.documents VALUES (1, 'holdout/order', 'encrypted:1:8LaWn6ldQbPhMenNAREkqSiKrpCoO+VY8Mle2Pqmr0je8B7ANsXxsSiv6U8nc1RU13gfMNox3PKTUVIGvqYl3fBu3Rf6S+5cOUOxslc52GFLRdFx7Vx64ZuR/28=');



INSERT INTO thresholdout.entries VALUES (1, 1, 'a', 'both agree', 0.5, 0.5, 0.3359338301059747, 0.6640661698940254, 'train', 4, 0, 1, NULL, NULL, '', '', 1795851593.8263521, '802169f7bf914ab5452f28327e00d912fc4df966c3c2e1db53e1a08104bfbae4');
INSERT INTO thresholdout.entries VALUES (1, 2, 'b', 'größer', 1, 0.24999887692178824, 0.10519520910667264, 0.41573796481150677, 'holdout', 3, 0, 1, NULL, NULL, '', '', 1795851593.870863, '90d1ae1856ebd7c4539ba9cfd4af2baa37199f3f00d11762fd399ffc039d074b');
INSERT INTO thresholdout.entries VALUES (1, 3, 'c', '=1+1', 0, 0.7642448838693401, 0.59898172738078, 0.9074599500990463, 'holdout', 2, 0, 1, NULL, NULL, '', '', 1795851593.9105275, '22a34aa743ea426d93dba24dbf7ecea5d21bb002ed9754a9ff466c225ee6f6fe');



INSERT INTO thresholdout.guards VALUES (1, 'bc68c5a94143cb9e65eedb62a4d36eef', '4928952a51d0545269ee1f1e28bf1744bdab28e66bfa0982042c1a9c08550c46', 'encrypted:1:ZA+jQ+eVSMKIk8jcFYObUYm+Lgc9+gT0fFK+t4qrR1PelYgfwOT6CvvjxAE6qFm2juYlPlg+xcxp4LDntQ==', '{"rules": 1, "declared": {"queries": 1000, "confidence": 0.95, "mechanism": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}, "sampling": "independent", "final_check": false, "dependence": "305e30f7ffefd4b5129bd4f4dd7ee432e34372bcab70b3e4d214aa2751281f62", "for_release": true, "prior_queries": null}, "chosen": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}}', 3, '22a34aa743ea426d93dba24dbf7ecea5d21bb002ed9754a9ff466c225ee6f6fe', NULL);



INSERT INTO thresholdout.settings VALUES ('format', '1');
INSERT INTO thresholdout.settings VALUES ('encryption', 'encrypted:1:zGfb0IvK7OQeU9j52LdqFKdeUnVkjayG79WXE9BJdyvd2ARRTUYBiA==');
INSERT INTO thresholdout.settings VALUES ('secret', 'encrypted:1:h1iMisy7K7YqBQjBWfRtD8iNxMRrQywKxSqtgvLuXTwWZQoDDknASnF8tb4fGiJ0Wh+nzzzTQI+1xH4sMHYEBEegPgE4LVUUo6HAcq2p8RIHXdHjFwKCfSBxYbw=');
INSERT INTO thresholdout.settings VALUES ('identity', 'fbcef5185cf1579cacd69bfb16ccb96c');



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



CREATE INDEX entries_client ON thresholdout.entries USING btree (guard, md5(client), query, "time");



CREATE UNIQUE INDEX entries_key ON thresholdout.entries USING btree (guard, md5(key));



CREATE TRIGGER documents_delete BEFORE DELETE ON thresholdout.documents FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('documents of a ledger are never deleted');



CREATE TRIGGER documents_truncate BEFORE TRUNCATE ON thresholdout.documents FOR EACH STATEMENT EXECUTE FUNCTION thresholdout.ledger_refuses('documents of a ledger are never deleted');



CREATE TRIGGER documents_update BEFORE UPDATE ON thresholdout.documents FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('documents of a ledger never change');



CREATE TRIGGER entries_delete BEFORE DELETE ON thresholdout.entries FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('entries of a ledger are never deleted');



CREATE TRIGGER entries_truncate BEFORE TRUNCATE ON thresholdout.entries FOR EACH STATEMENT EXECUTE FUNCTION thresholdout.ledger_refuses('entries of a ledger are never deleted');



CREATE TRIGGER entries_update BEFORE UPDATE ON thresholdout.entries FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('entries of a ledger never change');



CREATE TRIGGER guards_closed BEFORE UPDATE OF closed ON thresholdout.guards FOR EACH ROW WHEN ((old.closed IS NOT NULL)) EXECUTE FUNCTION thresholdout.ledger_refuses('a guard that was closed stays so');



CREATE TRIGGER guards_delete BEFORE DELETE ON thresholdout.guards FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('guards of a ledger are never deleted');



CREATE TRIGGER guards_truncate BEFORE TRUNCATE ON thresholdout.guards FOR EACH STATEMENT EXECUTE FUNCTION thresholdout.ledger_refuses('guards of a ledger are never deleted');



CREATE TRIGGER guards_update BEFORE UPDATE OF id, identity, content, parameters ON thresholdout.guards FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('what a guard is never changes');



ALTER TABLE ONLY thresholdout.documents
    ADD CONSTRAINT documents_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);



ALTER TABLE ONLY thresholdout.entries
    ADD CONSTRAINT entries_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);




