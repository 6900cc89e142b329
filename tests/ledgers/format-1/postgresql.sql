


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
    log_error_budget double precision,
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






INSERT INTO thresholdout.documents VALUES (1, 'holdout/content', 'encrypted:1:3aJs1dhlHZRaYX48Mlpqft3T2NealkUom2FQypyw0f1Ffn4X+OisXQK/SFPjWq5dwKGd6Y4yOq6U7YxO1vl6QpXLjKUvkjX9L5PYH8SxUw8uVzbNNWhrd0GyhNI=');
INSERT INTO thresholdout.documents VALUES (1, 'holdout/order', 'encrypted:1:Lzkhk0RAy1Dt0KClEj0d3jsTPnfeAWChVOVMLVeYZuPlkC6bnNmDK7ajIRYI7/8DXDaQPj9/cxh7SZl1yu+dmvWEfzwhb7VoIF2E+KsMZ2wvs4VIKS9z1VNgrUI=');



INSERT INTO thresholdout.entries VALUES (1, 1, 'a', 'both agree', 0.5, 0.5, 0.3359338301059747, 0.6640661698940254, 'train', 4, 0, 1, NULL, NULL, '', '', 1795865703.838783, 'ec156d1fb8198c3fcdcafdf18e34d076b73e4d20facfecbfa1d44986a3e5c77c');
INSERT INTO thresholdout.entries VALUES (1, 2, 'b', 'größer', 1, 0.24345588839620902, 0.09937562186506883, 0.4089842998857159, 'holdout', 3, 0, 1, NULL, NULL, '', '', 1795865704.0469143, '896e6ffb3c1b96ed9d976bbcc104022b8a2741d66c94a13763a63d03b86969b1');
INSERT INTO thresholdout.entries VALUES (1, 3, 'c', '=1+1', 0, 0.739956635636899, 0.5739203073051169, 0.8858498117288526, 'holdout', 2, 0, 1, NULL, NULL, '', '', 1795865704.206967, 'e55e2fefccc252e0697c0cb69aae37c492609a0a8d9925c2c2e7bcee973fad2e');



INSERT INTO thresholdout.guards VALUES (1, '2bdb79f3059f61e2c19a103c55c9de92', 'cb6143202ab1807e9eba64e104579ecb16dbb760da2ca5d01987de7642cb74ad', 'encrypted:1:dJCUeuFy/FPbJ9v0wxIHdVNIH+3i4oVYmx/xhW3Piq7vIc6/8jykV3nggJk7ZegRMuwDNBof4t9ltOPkZUk=', '{"rules": 1, "declared": {"queries": 1000, "confidence": 0.95, "mechanism": {"mechanism": "sparse-vector", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}, "sampling": "independent", "final_check": false, "development": null, "dependence": "305e30f7ffefd4b5129bd4f4dd7ee432e34372bcab70b3e4d214aa2751281f62", "for_release": true, "prior_queries": null}, "chosen": {"mechanism": "sparse-vector", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}}', 3, 'e55e2fefccc252e0697c0cb69aae37c492609a0a8d9925c2c2e7bcee973fad2e', NULL);



INSERT INTO thresholdout.settings VALUES ('format', '1');
INSERT INTO thresholdout.settings VALUES ('encryption', 'encrypted:1:HZnpV0okBtCldz2Me3jME2z7VJKu6xnnqaW7geV9SeDJNcd5oUnevw==');
INSERT INTO thresholdout.settings VALUES ('secret', 'encrypted:1:En0YNc0KgN4SRUEliiqXFeAqyr7JK/Xdr3yKhx3Y4gzO9dxCdp4Y5sUOpP0GpN0xhsSac2g2c9lqO1ZTTFUyCrcXStbctEO9RB1l7l8fbrT4B5VnYl9KQvrH5ws=');
INSERT INTO thresholdout.settings VALUES ('identity', '1c822f3348b7059c49856d1c67b3051f');



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




