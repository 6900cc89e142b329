


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



INSERT INTO thresholdout.documents VALUES (1, 'holdout/content', 'encrypted:1:R9JxHii8uDlIINxHBL5UqKPNHTUqWE4wvZgSxm78m5Ckpu0im9Ixg1Ft5VRtuPIzlbNgloCmqKe7EXTihTLkc8+afHDq/zst+WxZZ9+Cu4V1mTeDR6UCLII0jhY=');
INSERT INTO thresholdout.documents VALUES (1, 'holdout/order', 'encrypted:1:IC+fn/hpdzw+2BNWlexRYwafSunvKcVu2iA9wYxJcMKhUdi9Cv7+RRrvH85juZOHvvruLUVSpGxMPprPVm0vDLWkah8J6nvjkgCoefttdC8MOn2y/nqAcToL/ug=');



INSERT INTO thresholdout.entries VALUES (1, 1, 'a', 'both agree', 0.5, 0.5, 0.3359338301059747, 0.6640661698940254, 'train', 4, 0, 1, NULL, NULL, '', '', 1795850355.6710408, '05eef982da80cb577399f0d7bd2e232affa26e32ab5f7fb21834fee3b8fe625a');
INSERT INTO thresholdout.entries VALUES (1, 2, 'b', 'größer', 1, 0.24036934691591405, 0.09663407229703075, 0.4057936911931655, 'holdout', 3, 0, 1, NULL, NULL, '', '', 1795850355.7109578, 'c52dd264ed82fa18f1065f3f40f27fca2c05873f012b1775360fd0fbc7bed481');
INSERT INTO thresholdout.entries VALUES (1, 3, 'c', '=1+1', 0, 0.7462159733165983, 0.5803611568050465, 0.8914332037262052, 'holdout', 2, 0, 1, NULL, NULL, '', '', 1795850355.773619, '8c0056fd16f5635e9ce81e387f13a743e2e6330b118df4f46d9e7a07e53b363d');



INSERT INTO thresholdout.guards VALUES (1, '3056fa4c0a1555e5b72207b2f0b60f29', '24de75de48b697ac1c1de792eb150dc8793081f8dbc07aebea9535a4148aba12', 'encrypted:1:2mFnoN6KXVebYmy/c9+g7ZZRiDXPSpj3a6ZCLK/lhzo4qIawIn4L5O/L/+CiPgBSS6l4Ukxz264E3rzKXg==', '{"rules": 1, "declared": {"queries": 1000, "budget": 10, "confidence": 0.95, "at_most": null, "private": null, "threshold": null, "noise_scale": null, "grid": null, "mechanism": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}, "identically_distributed": false, "given": null, "final_check": false, "dependence": "305e30f7ffefd4b5129bd4f4dd7ee432e34372bcab70b3e4d214aa2751281f62", "for_release": true}, "chosen": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}}', 3, '8c0056fd16f5635e9ce81e387f13a743e2e6330b118df4f46d9e7a07e53b363d', NULL);



INSERT INTO thresholdout.settings VALUES ('format', '1');
INSERT INTO thresholdout.settings VALUES ('encryption', 'encrypted:1:zyufzYhbsABil6H8UiDb0EW97Q1knWBTn4qmSpteMiIFhwkVMar8OA==');
INSERT INTO thresholdout.settings VALUES ('secret', 'encrypted:1:Zdmr5uySdNbbfz8hi+AL8cvQtbAIcVm8U2pCTf85j8ED8HjdW9qws2ZlHG3WtCi/jwerYLMFQmpR9JPHUf9VM2Zh3vbgbF/sQXhyj++jnYLg3JJv4MY74w1cwZc=');
INSERT INTO thresholdout.settings VALUES ('identity', 'a64eed897e3ffe11947f282473d30572');



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




