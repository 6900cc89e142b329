


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


CREATE TABLE thresholdout.clients (
    guard integer NOT NULL,
    name text NOT NULL,
    state text NOT NULL
);



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






INSERT INTO thresholdout.documents VALUES (1, 'holdout/content', 'encrypted:1:pNE/woN3cCrJq8wKtW1TzG163qevol6qwHM+XXjGe3s/nMBS9JUO1LU0qJ2HaIbdcOTigogCNO1ICR3sWRnBkr+R6KKkvafTzeowX3t2bSiRxzrTXv/E8drm7R8=');
INSERT INTO thresholdout.documents VALUES (1, 'holdout/order', 'encrypted:1:eAeOuJXu/LJk3pX5WPZXFkVUrk0jeRa/sywsu64I8N311/YuQW1Ck0VZ6mzDaz00lenrO5c41X2ziwTyLv228Qwu6Iqo7VUH9mBCsXU16D3JfR9lN7oNPquLOEM=');



INSERT INTO thresholdout.entries VALUES (1, 1, 'a', 'both agree', 0.5, 0.5, 0.3359338301059747, 0.6640661698940254, 'train', 4, 0, 1, NULL, NULL, '', '', 1795853248.6748981, '8df5ed1b5b1abe616d1a7495f13cf4b71514ce4ab2c7e0f6afcdb7e0d49282cf');
INSERT INTO thresholdout.entries VALUES (1, 2, 'b', 'größer', 1, 0.2473321590853832, 0.10282202507820047, 0.4129870092526619, 'holdout', 3, 0, 1, NULL, NULL, '', '', 1795853249.320858, '22fd40a7667d51b23d968ccba0df3e3ef86874593f904254cfef8ae0e040b7d8');
INSERT INTO thresholdout.entries VALUES (1, 3, 'c', '=1+1', 0, 0.7495757733674058, 0.5838234561425031, 0.8944260949106526, 'holdout', 2, 0, 1, NULL, NULL, '', '', 1795853249.3528888, 'fcf7776d4ebeb1cc01224388f69d1c24fdc40f45c1098e16cec37c1cc675385a');



INSERT INTO thresholdout.guards VALUES (1, '1470b85efb72ff1a9c8d57d31ed6627f', '992e0a6689697a0de666c5b4576352498550bb00e342a044853ccc742cbcef8f', 'encrypted:1:rxYChp/YZXlT6q7Cy3Fuwau0zDnoSzLRlxqUMKLWaPcts+/JUFRv83bzFnWUUSCNkHZgGgWdD+XdYjVeXac=', '{"rules": 1, "declared": {"queries": 1000, "confidence": 0.95, "mechanism": {"mechanism": "sparse-vector", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}, "sampling": "independent", "final_check": false, "dependence": "305e30f7ffefd4b5129bd4f4dd7ee432e34372bcab70b3e4d214aa2751281f62", "for_release": true, "prior_queries": null}, "chosen": {"mechanism": "sparse-vector", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}}', 3, 'fcf7776d4ebeb1cc01224388f69d1c24fdc40f45c1098e16cec37c1cc675385a', NULL);



INSERT INTO thresholdout.settings VALUES ('format', '1');
INSERT INTO thresholdout.settings VALUES ('encryption', 'encrypted:1:/lnPAk1DesQNL/4rHWe1/JT19ZQPkE24uqKCg+CT9LiYt5YDeO9MWw==');
INSERT INTO thresholdout.settings VALUES ('secret', 'encrypted:1:yRXt0zpiDiil4UvJKBYtP80ae9In+vS/rizdSn+2Svzeb6l0cNJMQ+oO3qAGLpFm4d2DOJfp19k/GbfZEwvbscm91YPnmXKML5psyZ8L0uYoBa1sdTPVlb2S8Lg=');
INSERT INTO thresholdout.settings VALUES ('identity', 'ba9ef7250d974183146c5b7bf63f7f6e');



SELECT pg_catalog.setval('thresholdout.guards_id_seq', 1, true);



ALTER TABLE ONLY thresholdout.clients
    ADD CONSTRAINT clients_pkey PRIMARY KEY (guard, name);



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



ALTER TABLE ONLY thresholdout.clients
    ADD CONSTRAINT clients_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);



ALTER TABLE ONLY thresholdout.documents
    ADD CONSTRAINT documents_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);



ALTER TABLE ONLY thresholdout.entries
    ADD CONSTRAINT entries_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);




