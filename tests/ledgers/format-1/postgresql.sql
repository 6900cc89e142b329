


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






INSERT INTO thresholdout.documents VALUES (1, 'holdout/content', 'encrypted:1:0oI4Lb+ilrEFPSHe3uwda9JjTDOqiB+x5o4+6HW08jazlPI9QARmKFg0zHy7NUmDoopLlR/Hu0uIO6P+qZ575lS7XKRL9zT5OApuid7KVRn6rVG78Ul5imh/rtM=');
INSERT INTO thresholdout.documents VALUES (1, 'holdout/order', 'encrypted:1:5zzQ/j72vTWzxv9+QFtFzK87dukX/X6zwn/wF09pmryrHMRwNd/uXBxAYGwfPrBfTuPWKZW5GvJTKJl9nT6mwFKkMcn/IJ9FqnlPTs42p/ilV1lC+mp4O6do/SI=');



INSERT INTO thresholdout.entries VALUES (1, 1, 'a', 'both agree', 0.5, 0.5, 0.3359338301059747, 0.6640661698940254, 'train', 4, 0, 1, NULL, NULL, '', '', 1795853585.2509527, '57102a6e12cb6b91d3369978909dc345bc77a519a327e17f31d8c008cd68a0c7');
INSERT INTO thresholdout.entries VALUES (1, 2, 'b', 'größer', 1, 0.2598979639590002, 0.11402037715974282, 0.4259302151421441, 'holdout', 3, 0, 1, NULL, NULL, '', '', 1795853585.3276467, 'cc1ca38651f00fe74f4277094468475556749226ada9e93b3e55cfc2a491f17e');
INSERT INTO thresholdout.entries VALUES (1, 3, 'c', '=1+1', 0, 0.740522843335631, 0.5745024292312404, 0.8863552825606897, 'holdout', 2, 0, 1, NULL, NULL, '', '', 1795853585.3662226, '7f298142bafbf7520651d0546d5940ab1b32cd06ef5c1031ad18b0d7c4e10f20');



INSERT INTO thresholdout.guards VALUES (1, 'c76d170a43e9e5e63b8aaa03d7fead02', '3433ad11d556f668010cbae922e974506487b90eac0004b0109bca6117516e66', 'encrypted:1:j7XqGiR4sRjGE22wYEBUjWvkOcIcQLp57yvP+Z21nX6R5qpp1AVscvy4U9o4QOTt2oycV09Vln1pTeseboY=', '{"rules": 1, "declared": {"queries": 1000, "confidence": 0.95, "mechanism": {"mechanism": "sparse-vector", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}, "sampling": "independent", "final_check": false, "dependence": "305e30f7ffefd4b5129bd4f4dd7ee432e34372bcab70b3e4d214aa2751281f62", "for_release": true, "prior_queries": null}, "chosen": {"mechanism": "sparse-vector", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}}', 3, '7f298142bafbf7520651d0546d5940ab1b32cd06ef5c1031ad18b0d7c4e10f20', NULL);



INSERT INTO thresholdout.settings VALUES ('format', '1');
INSERT INTO thresholdout.settings VALUES ('encryption', 'encrypted:1:WUT/TuurdRg7L95/6ZoDvbkgIAnbH9PfBLTLBp61S5RRlNKvdOVy2Q==');
INSERT INTO thresholdout.settings VALUES ('secret', 'encrypted:1:erTro4ZZEW5no8I2xNh0pur2BVo/bmv49TUZbvvJI745ZXBFnURYIJV1rt9JN/7PFtQWmfyhNmGeuvXhpfkUu+1PFdkZy++RH0dRKSyJxQsbvl+LHWBRwoxmkkQ=');
INSERT INTO thresholdout.settings VALUES ('identity', '88cf8fababf71e0df56d05b8447225b0');



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




