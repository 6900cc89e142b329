


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



INSERT INTO thresholdout.documents VALUES (1, 'holdout/content', 'sealed:1:uMhuEvYhXoIop4jEbqKHOswHVX1IQz+foV/VCwDd6mbnvOipPMUet0wEMzaxEWo739EMnBdPP0cBznt8utisxVHY8w8TYbTQ+sB9VdQLaAcZA9HmRBNGTTcqFuY=');
INSERT INTO thresholdout.documents VALUES (1, 'holdout/order', 'sealed:1:UoXFp5ut0Q7bggvtt/Lq9xmVMkrD+x8pOh6P8yqVHtbBezqEAIQoQhTlnYo1QsfQ0fMloUy90olofW6BngluMVQ9DVTKoHUeN6mgmV7BC2ITDY+oieXC+X5NQ7k=');



INSERT INTO thresholdout.entries VALUES (1, 1, 'a', 'both agree', 0.5, 0.5, 0.3359338301059747, 0.6640661698940254, 'train', 4, 0, 1, NULL, NULL, '', '', 1795386500.9645867, '226bffd63c303ecf21dd588a54f8b1f7aff800ac61b348085ce7d14f133b5ab1');
INSERT INTO thresholdout.entries VALUES (1, 2, 'b', 'größer', 1, 0.28591318722248715, 0.13733189850472222, 0.4525700154529351, 'holdout', 3, 0, 1, NULL, NULL, '', '', 1795386500.9813373, '9758f90cc9f86cfcb19c58602611c761b00cc936e530d9519edaebba538e7a83');
INSERT INTO thresholdout.entries VALUES (1, 3, 'c', '=1+1', 0, 0.7548785208880986, 0.5892951999712288, 0.8991439601782801, 'holdout', 2, 0, 1, NULL, NULL, '', '', 1795386500.9932666, '3deab08c021844a3043167617df71091eb8ea45a7c32d9e89084cb409653a7b1');



INSERT INTO thresholdout.guards VALUES (1, '5a2396c1df2fa58a5a573df50f660356', '', '775c269f85998499bbb1f2f2809e481d5b2e3f18fb69906fba6865df6365d223', 'sealed:1:MSRwTmTydceebmzt/E4v82ZJHdpourGJ27VZH+m5Km7irAQ8xJPA8yrsYl+5YNS/WkUFsaHk0Izr0H78DQ==', '{"rules": 1, "declared": {"queries": 1000, "budget": 10, "confidence": 0.95, "at_most": null, "private": null, "threshold": null, "noise_scale": null, "grid": null, "mechanism": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}, "identically_distributed": false, "given": null, "final_check": false, "dependence": "305e30f7ffefd4b5129bd4f4dd7ee432e34372bcab70b3e4d214aa2751281f62", "for_release": true}, "chosen": {"mechanism": "thresholdout", "threshold": 0.1, "noise_scale": 0.003, "budget": 4, "queries": 50, "grid": null, "ratios": [1.0, 2.0, 4.0]}}', 3, '3deab08c021844a3043167617df71091eb8ea45a7c32d9e89084cb409653a7b1', NULL);



INSERT INTO thresholdout.settings VALUES ('format', '2');
INSERT INTO thresholdout.settings VALUES ('seal', 'sealed:1:LvLkoO8uGhp4/JKJkReSCSekXPmHFd3//mUvOUeCL8JRFops+WkpKA==');
INSERT INTO thresholdout.settings VALUES ('secret', 'sealed:1:PJZBOGIllk2Be8uSaHwxK4I9rg6an+ZQsQRvgCRoJm2YmT3/Bcy26naYWF6FPJ1pUYJ87dYUaSzBc5R5Kkw1Y5CuRyhiDzjuctKcpgCVlRCKsYF6BI5gpsYoJ68=');
INSERT INTO thresholdout.settings VALUES ('identity', '736ffeadf31d18c0826eb0358f029e7e');



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



CREATE TRIGGER guards_update BEFORE UPDATE OF id, identity, owner, content, parameters ON thresholdout.guards FOR EACH ROW EXECUTE FUNCTION thresholdout.ledger_refuses('what a guard is never changes');



ALTER TABLE ONLY thresholdout.documents
    ADD CONSTRAINT documents_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);



ALTER TABLE ONLY thresholdout.entries
    ADD CONSTRAINT entries_guard_fkey FOREIGN KEY (guard) REFERENCES thresholdout.guards(id);




