


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



INSERT INTO thresholdout.documents VALUES (1, 'holdout/content', 'sealed:1:6kF18VoEDoBl/dNvE0RP+BSWzRngWexJ8czlt3ge6t1+n51jD7m2/stSIkBprVdEtnkhNEqtjXM9rd8lczkP8N2/c/GxT4L66yKuKqvE9ZHhUKwq5jP2cY7erc0=');
INSERT INTO thresholdout.documents VALUES (1, 'holdout/order', 'sealed:1:eHP4JcyS9XOqKuhMtrAGCeUVwedZzkk0Hn2LIXymcWCW96ci0Ox7QPpBygvxuYJ1J+WjiPvLsLQKDGUrwDHQeKdo70uUxOoMeWiWYi5zPci4Fgyq+dMiTfIZb9c=');



INSERT INTO thresholdout.entries VALUES (1, 1, 'a', 'both agree', 0.5, 0.5, 0.332692228708096, 0.667307771291904, 'train', 4, 0, 1, NULL, NULL, '', '', '15c7bbab49a4cb2b4e4d4b9be78613dc723da9be59c092b2494559367f7afd38');
INSERT INTO thresholdout.entries VALUES (1, 2, 'b', 'größer', 1, 0.24598761556225313, 0.07867984427034916, 0.4132953868541571, 'holdout', 3, 0, 1, NULL, NULL, '', '', 'fe49a300348b6bb26470984e03fc8bfdba360c5709ee9b2c1fcc95ab1cc6fd2e');
INSERT INTO thresholdout.entries VALUES (1, 3, 'c', '=1+1', 0, 0.7671171786671049, 0.5998094073752009, 0.9344249499590089, 'holdout', 2, 0, 1, NULL, NULL, '', '', '2e4925a2e3e8e070d8a32815791ba6b256a9e625f1fee73d22736134aeb4c1d4');



INSERT INTO thresholdout.guards VALUES (1, 'f41232284935218625427b25a975dc43', '', 'b9b193fe5ee2b0a0ddc0eb47a2f371d7b315b7313967d1c53328c2584c345ef0', 'sealed:1:bsMvVYc2XSozE/QkDeOFASxndMTCpElCAXrYzArJe7Brotn1V2w/i+onlI1Eh49oACWbYdZa8UhdTYNmhQ==', '{"rules": 1, "declared": {"queries": 1000, "budget": 10, "confidence": 0.95, "threshold": null, "noise_scale": null, "grid": null, "mechanism": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}, "identically_distributed": false, "dependence": "305e30f7ffefd4b5129bd4f4dd7ee432e34372bcab70b3e4d214aa2751281f62", "for_release": true}, "chosen": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}}', 3, '2e4925a2e3e8e070d8a32815791ba6b256a9e625f1fee73d22736134aeb4c1d4', NULL);



INSERT INTO thresholdout.settings VALUES ('format', '1');
INSERT INTO thresholdout.settings VALUES ('seal', 'sealed:1:RKntftk9qIZygMHBoYV2vKMEYO98p9RWA60LvkihCH/OHEt64nZppQ==');
INSERT INTO thresholdout.settings VALUES ('secret', 'sealed:1:msg0JswhfyLfLzTaxiF0P3y/kb61EiBQP1QyXvWDw/G1gakoey6b6RxPfKSbziXXCJG9qKlTlvw3eL081n1jlTyYp9eJZ7mzByn+QLMoZzvqr+Ri1Jp285HX4/U=');



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




