CREATE SCHEMA gnl;
CREATE TABLE gnl.gnl_attempts (
    run_id text NOT NULL,
    attempt bigint NOT NULL,
    holder text NOT NULL,
    started_at double precision NOT NULL,
    ended_at double precision,
    status text NOT NULL,
    error text
);
CREATE TABLE gnl.gnl_blobs (
    run_id text NOT NULL,
    hash text NOT NULL,
    compressed bigint NOT NULL,
    body bytea NOT NULL
);
CREATE TABLE gnl.gnl_effects (
    window_run text NOT NULL,
    tool text NOT NULL,
    digest text NOT NULL,
    owner_run text NOT NULL,
    owner_key text NOT NULL,
    claimed_at double precision NOT NULL
);
CREATE TABLE gnl.gnl_resolutions (
    id text NOT NULL,
    run_id text NOT NULL,
    key text NOT NULL,
    token text NOT NULL,
    decision text NOT NULL,
    value_hash text,
    decided_by text NOT NULL,
    note text NOT NULL,
    decided_at double precision NOT NULL
);
CREATE TABLE gnl.gnl_runs (
    run_id text NOT NULL,
    status text NOT NULL,
    attempts bigint NOT NULL,
    created_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    completed_at double precision,
    fence bigint NOT NULL,
    holder text,
    lease_ends_at double precision NOT NULL,
    input_digest text,
    metadata bytea NOT NULL,
    side_effects bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE gnl.gnl_schema (
    version integer NOT NULL,
    synced_at double precision DEFAULT '0'::double precision NOT NULL
);
CREATE SEQUENCE gnl.gnl_schema_version_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE gnl.gnl_schema_version_seq OWNED BY gnl.gnl_schema.version;
CREATE TABLE gnl.gnl_steps (
    run_id text NOT NULL,
    key text NOT NULL,
    number bigint NOT NULL,
    scope text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    policy text NOT NULL,
    status text NOT NULL,
    token text NOT NULL,
    fence bigint NOT NULL,
    tries bigint NOT NULL,
    attempt bigint NOT NULL,
    started_at double precision NOT NULL,
    begun bigint NOT NULL,
    arguments_hash text NOT NULL,
    fingerprint text NOT NULL,
    reply text,
    "position" bigint,
    call_id text,
    rounds text NOT NULL,
    shape text,
    base text,
    setups text NOT NULL,
    answered text NOT NULL,
    calls text NOT NULL,
    reply_digest text,
    tokens bigint NOT NULL,
    finished_at double precision,
    ended bigint,
    value_hash text,
    failure bytea,
    raw bigint NOT NULL,
    blocked text,
    resolution text,
    drifted bigint NOT NULL,
    late bytea,
    side_effect bigint NOT NULL,
    intent_seal text NOT NULL,
    outcome_seal text
);
ALTER TABLE ONLY gnl.gnl_schema ALTER COLUMN version SET DEFAULT nextval('gnl.gnl_schema_version_seq'::regclass);
INSERT INTO gnl.gnl_attempts VALUES ('order-8', 1, '{"host":"worker-1","machine":"machine:boot","namespace":"pid:[1]","pid":77,"started":"1","nonce":"5641cecd"}', 1796033592.57893, 1796033592.829556, 'completed', NULL);
INSERT INTO gnl.gnl_attempts VALUES ('order-7', 1, '{"host":"worker-1","machine":"machine:boot","namespace":"pid:[1]","pid":77,"started":"1","nonce":"3152bded"}', 1796033592.867831, 1796033593.002044, 'interrupted', 'Killed: ');
INSERT INTO gnl.gnl_blobs VALUES ('order-8', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 0, '\x7b7d');
INSERT INTO gnl.gnl_blobs VALUES ('order-8', '9b4b8fe622a9c70c7586522f8d23895f26a065a31279a7cd74a2e465e82e19df', 0, '\x302e34383536333835323933333033393034');
INSERT INTO gnl.gnl_blobs VALUES ('order-8', 'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1', 0, '\x226c6f6f6b656420757022');
INSERT INTO gnl.gnl_blobs VALUES ('order-8', 'a34d603ffda287f8be61c05b41a75736995ce3ff2a799ca23f84a9ed0d32ed3c', 0, '\x7b2263686172676564223a226f726465722d38222c22726177223a7b2224676e6c223a226279746573222c2276616c7565223a224150383d227d7d');
INSERT INTO gnl.gnl_blobs VALUES ('order-8', '46b031068a4f0d67dae5580f43c4af498109e938871ee09badc9c96034f9b4c0', 1, '\x7801edd0b10000000002309728c34fa36343588a0103060c183060c0800103f703197a657ed0');
INSERT INTO gnl.gnl_blobs VALUES ('order-7', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 0, '\x7b7d');
INSERT INTO gnl.gnl_blobs VALUES ('order-7', '1df4a0512883da94150dfae124588e042d77ff95e1a9f74487a3bb6f626db002', 0, '\x302e35323934333534343631323238343232');
INSERT INTO gnl.gnl_blobs VALUES ('order-7', 'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1', 0, '\x226c6f6f6b656420757022');
INSERT INTO gnl.gnl_runs VALUES ('order-8', 'completed', 1, 1796033592.57893, 1796033592.829556, 1796033592.829556, 1, NULL, 0, NULL, '\x7b226279223a2276657273696f6e2031227d', 2);
INSERT INTO gnl.gnl_runs VALUES ('order-7', 'running', 1, 1796033592.867831, 1796033593.002044, NULL, 1, NULL, 0, NULL, '\x7b226279223a2276657273696f6e2031227d', 1);
INSERT INTO gnl.gnl_schema VALUES (1, 0);
INSERT INTO gnl.gnl_steps VALUES ('order-8', 'random/ef121ed6932d09a0/1', 1, '', 'value', 'random', '', 'done', '3166579bfd63b9c3', 1, 1, 1, 1790000000, 1, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 'ef121ed6932d09a0123eb663a695573dc3d69da922a7d4aaeb2c7f6adc1b2d57', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1790000000, 2, '9b4b8fe622a9c70c7586522f8d23895f26a065a31279a7cd74a2e465e82e19df', NULL, 0, NULL, NULL, 0, NULL, 0, 'e9d9bbf83af608ec', '5acbe7986cee01ee');
INSERT INTO gnl.gnl_steps VALUES ('order-8', 'look_up/44136fa355b3678a/1', 2, '', 'tool', 'look_up', 'safe', 'done', 'b84e079a55fceb46', 1, 1, 1, 1790000000, 3, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1790000000, 4, 'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1', NULL, 0, NULL, NULL, 0, NULL, 0, 'c77f56301c069afc', 'ff5410d5ddf0a086');
INSERT INTO gnl.gnl_steps VALUES ('order-8', 'charge/44136fa355b3678a/1', 3, '', 'tool', 'charge', 'never', 'done', '91a633ccd808b84a', 1, 1, 1, 1790000000, 5, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1790000000, 6, 'a34d603ffda287f8be61c05b41a75736995ce3ff2a799ca23f84a9ed0d32ed3c', NULL, 0, NULL, NULL, 0, NULL, 1, '52577d65d48069fd', '8b9be675f24abc72');
INSERT INTO gnl.gnl_steps VALUES ('order-8', 'mail/44136fa355b3678a/1', 4, '', 'tool', 'mail', 'keyed', 'done', '1712cdc2259fabb7', 1, 1, 1, 1790000000, 7, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1790000000, 8, '46b031068a4f0d67dae5580f43c4af498109e938871ee09badc9c96034f9b4c0', NULL, 0, NULL, NULL, 0, NULL, 1, '06074383bd4bdb9b', '610bc212484bde2a');
INSERT INTO gnl.gnl_steps VALUES ('order-7', 'random/ef121ed6932d09a0/1', 1, '', 'value', 'random', '', 'done', 'fadeac5644811eeb', 1, 1, 1, 1790000000, 1, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 'ef121ed6932d09a0123eb663a695573dc3d69da922a7d4aaeb2c7f6adc1b2d57', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1790000000, 2, '1df4a0512883da94150dfae124588e042d77ff95e1a9f74487a3bb6f626db002', NULL, 0, NULL, NULL, 0, NULL, 0, 'ca30b9c3a2581f6b', 'c07a8895f721e6de');
INSERT INTO gnl.gnl_steps VALUES ('order-7', 'look_up/44136fa355b3678a/1', 2, '', 'tool', 'look_up', 'safe', 'done', '0d6ecc39bc5580f0', 1, 1, 1, 1790000000, 3, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1790000000, 4, 'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1', NULL, 0, NULL, NULL, 0, NULL, 0, 'd2b4542935b0f82f', '884b0fc5839da9a6');
INSERT INTO gnl.gnl_steps VALUES ('order-7', 'charge/44136fa355b3678a/1', 3, '', 'tool', 'charge', 'never', 'started', 'd06081eef5a1706d', 1, 1, 1, 1790000000, 5, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 1, '414c84ec2f9a0ffa', NULL);
ALTER TABLE ONLY gnl.gnl_attempts
    ADD CONSTRAINT gnl_attempts_pkey PRIMARY KEY (run_id, attempt);
ALTER TABLE ONLY gnl.gnl_blobs
    ADD CONSTRAINT gnl_blobs_pkey PRIMARY KEY (run_id, hash);
ALTER TABLE ONLY gnl.gnl_effects
    ADD CONSTRAINT gnl_effects_pkey PRIMARY KEY (window_run, tool, digest);
ALTER TABLE ONLY gnl.gnl_resolutions
    ADD CONSTRAINT gnl_resolutions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY gnl.gnl_runs
    ADD CONSTRAINT gnl_runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY gnl.gnl_schema
    ADD CONSTRAINT gnl_schema_pkey PRIMARY KEY (version);
ALTER TABLE ONLY gnl.gnl_steps
    ADD CONSTRAINT gnl_steps_pkey PRIMARY KEY (run_id, key);
CREATE INDEX gnl_resolutions_by_step ON gnl.gnl_resolutions USING btree (run_id, key);
CREATE INDEX gnl_runs_by_status ON gnl.gnl_runs USING btree (status, updated_at);
