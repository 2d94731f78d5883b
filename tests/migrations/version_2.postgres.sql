CREATE SCHEMA gnl;
CREATE TABLE gnl.gnl_attempts (
    run_id text NOT NULL,
    attempt bigint NOT NULL,
    holder text NOT NULL,
    started_at double precision NOT NULL,
    ended_at double precision,
    status text NOT NULL,
    error text,
    links bytea,
    lease_ends_at double precision,
    steps_ran bigint,
    steps_read_back bigint,
    tokens_not_spent bigint,
    seconds_not_spent double precision
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
CREATE TABLE gnl.gnl_metadata (
    run_id text NOT NULL,
    digest text NOT NULL
);
CREATE TABLE gnl.gnl_removals (
    removal text NOT NULL,
    run_id text NOT NULL,
    kind text NOT NULL,
    removed_at double precision NOT NULL,
    removed_by text NOT NULL,
    note text NOT NULL,
    steps bigint NOT NULL,
    steps_kept bigint NOT NULL,
    payloads bigint NOT NULL,
    bytes bigint NOT NULL,
    digest text NOT NULL
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
    side_effects bigint DEFAULT '0'::bigint NOT NULL,
    chain_head text,
    chain_rows bigint,
    locked bigint DEFAULT '1'::bigint NOT NULL,
    forked_from text,
    effects bigint DEFAULT '1'::bigint NOT NULL
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
    outcome_seal text,
    holder text,
    claimed_until double precision,
    origin text,
    payloads text
);
CREATE TABLE gnl.gnl_tags (
    run_id text NOT NULL,
    tag text NOT NULL
);
ALTER TABLE ONLY gnl.gnl_schema ALTER COLUMN version SET DEFAULT nextval('gnl.gnl_schema_version_seq'::regclass);
INSERT INTO gnl.gnl_attempts VALUES ('order-8', 1, '{"host":"worker-1","machine":"machine:boot","namespace":"pid:[1]","pid":77,"started":"1","nonce":"077eace3"}', 1796070335.254279, 1796070335.363993, 'completed', NULL, '\x78017592cd6a5c310c46dfc5eb814896654b7995108a6c596dc82413e66755faee550ad35572bdb8dc0bf6f9743eff2ee7db7b797c2a4622e143d188e7eca1b62a47dd0634f760d19e4b8926da561b31054df6107130ed12e550dca6c856ad4058c93b5a73e82adeba625800135965c3a6d4627007acdb217a251e7bcdf27c28d797f55a1ee5502ed7fd71c9604fe56cef7e7a7bd88115b777a5eaa0060f580e78083b5ef6a10ca22588a34d599d032c26fb98400b4376861f1ba4aa036726657768ab9229785d75ee9ee947be77cf7f520377db99e6a91c4fa7d71fb78f87d6907aa41a9ed487d8279cee708b9c30a683108d683e6acfd15297e78e24811328587ea989b254de9aa2d3920b72d7efe0eb979d7fee2fd97c678f368c82a6505b320566acb109b9e95a089d5d49b85bedcd4879a583f088e5a36d6b81e33bf69bbd1cbf248f3b19404c78426f75f2b02c7d60da4e0dd5943706349eb58a058f109c0dbd8b351d368127ce2fc97903ec7add6f1fd77fddffef3707ea3ab32e9496254f5e796f7ccdea0adc857acb87d36996301cc6aa6bae2c7aa41840b7f29c279ff7e574bc5d5f4eef9f873ffff90b353fd234', NULL, 4, 0, 0, 0);
INSERT INTO gnl.gnl_attempts VALUES ('order-7', 1, '{"host":"worker-1","machine":"machine:boot","namespace":"pid:[1]","pid":77,"started":"1","nonce":"b66407dc"}', 1796070335.387907, 1796070335.431424, 'interrupted', 'Killed: ', '\x78017591c18a5b310c45ffc5eb07b12d4b96e6574228b225b5c3649290bcac4affbd4ea15d4d1168a97374efcf747f5ed2db31219a17cdb3f7a8a3458d29b951ae9558271bb828f7324850845b035320f02630dc248aa52d8d863444c0c00ccd2a764382b51a4a08a04f44c10c48d41d73b6193cc29cb46667a374dad2fe3e3fd21b6ee9b1fbedb1c48ee9ae17bb7e1e3c4a2d6e24502d8be643495bd942cf0fdf12702e84a6d3c31db465f3ae28632c95368831181102b83a64e59671f250e02952a1332ffb5e873b810ad728de7cd91cd3f97afdf8f6bc1d5a2b40a18038803aeb0b0e7fe13133562c5e5a8bc599fd9555eeceb9e5c8529b52ab5279945c51fbc819a3ca5cef97c2d8e7ffe0f387debffb976cdcf6fb73fdddc9649618866ead7624c7529c9816320b8475ee56a1cc2234c57a5ffe5ebbc29ae9f2357ad5a0fbee9fb7fd4f01ff421e9da3a8b2030f0ce1d571e1e2c356c6cae61a6641a589a9190c9019a8005a097200d5745a97effeb89e9ffbfbf5f23a7efaf51b9446b3d1', NULL, 3, 0, 0, 0);
INSERT INTO gnl.gnl_blobs VALUES ('order-8', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 0, '\x7b7d');
INSERT INTO gnl.gnl_blobs VALUES ('order-8', '9292a8c755aa2c626e5e61e34ef22357bca3463eb846d64e558cdb84a9771ca7', 0, '\x302e37373534333537393731353333323939');
INSERT INTO gnl.gnl_blobs VALUES ('order-8', 'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1', 0, '\x226c6f6f6b656420757022');
INSERT INTO gnl.gnl_blobs VALUES ('order-8', 'a34d603ffda287f8be61c05b41a75736995ce3ff2a799ca23f84a9ed0d32ed3c', 0, '\x7b2263686172676564223a226f726465722d38222c22726177223a7b2224676e6c223a226279746573222c2276616c7565223a224150383d227d7d');
INSERT INTO gnl.gnl_blobs VALUES ('order-8', '46b031068a4f0d67dae5580f43c4af498109e938871ee09badc9c96034f9b4c0', 1, '\x7801edd0b10000000002309728c34fa36343588a0103060c183060c0800103f703197a657ed0');
INSERT INTO gnl.gnl_blobs VALUES ('order-7', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 0, '\x7b7d');
INSERT INTO gnl.gnl_blobs VALUES ('order-7', 'af6ba45bb671cd7e8e8f9144efc7e3f6d740621aa8eb57773b28ee8b00a4e04b', 0, '\x302e36343439343935363137383434333334');
INSERT INTO gnl.gnl_blobs VALUES ('order-7', 'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1', 0, '\x226c6f6f6b656420757022');
INSERT INTO gnl.gnl_metadata VALUES ('order-8', '831ee573c5c211b93bbf3b68158564548d42f7d18efd1bb6e8039ea134a7ecf0');
INSERT INTO gnl.gnl_metadata VALUES ('order-7', '831ee573c5c211b93bbf3b68158564548d42f7d18efd1bb6e8039ea134a7ecf0');
INSERT INTO gnl.gnl_runs VALUES ('order-8', 'completed', 1, 1796070335.254279, 1796070335.363993, 1796070335.363993, 1, NULL, 0, NULL, '\x7b226279223a2276657273696f6e2032227d', 2, '7666b8938a50268548950b4c307063ad0602a3533d63efc8f2bc8fa0598edc7e', 5, 1, NULL, 1);
INSERT INTO gnl.gnl_runs VALUES ('order-7', 'running', 1, 1796070335.387907, 1796070335.431424, NULL, 1, NULL, 0, NULL, '\x7b226279223a2276657273696f6e2032227d', 1, '16ca424d6a64e9649a685d8ed149609513edc162b418d9b4c2110942e256c151', 4, 1, NULL, 1);
INSERT INTO gnl.gnl_schema VALUES (2, 0);
INSERT INTO gnl.gnl_steps VALUES ('order-8', 'random/ef121ed6932d09a0/1', 1, '', 'value', 'random', '', 'done', '9f2c6b3cad650b6f0', 1, 1, 1, 1796070335.2905114, 1, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 'ef121ed6932d09a0123eb663a695573dc3d69da922a7d4aaeb2c7f6adc1b2d57', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1796070335.2939715, 2, '9292a8c755aa2c626e5e61e34ef22357bca3463eb846d64e558cdb84a9771ca7', NULL, 0, NULL, NULL, 0, NULL, 0, '529cd187e888c7da', '11ef14c9ecfaf3aa', NULL, NULL, NULL, NULL);
INSERT INTO gnl.gnl_steps VALUES ('order-8', 'look_up/44136fa355b3678a/1', 2, '', 'tool', 'look_up', 'safe', 'done', '9f2c6b3cad650b6f1', 1, 1, 1, 1796070335.323437, 3, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1796070335.323653, 4, 'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1', NULL, 0, NULL, NULL, 0, NULL, 0, '6fea3fb355b085de', 'bb006736f83e21af', NULL, NULL, NULL, NULL);
INSERT INTO gnl.gnl_steps VALUES ('order-8', 'charge/44136fa355b3678a/1', 3, '', 'tool', 'charge', 'never', 'done', '9f2c6b3cad650b6f2', 1, 1, 1, 1796070335.3344102, 5, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1796070335.3460188, 6, 'a34d603ffda287f8be61c05b41a75736995ce3ff2a799ca23f84a9ed0d32ed3c', NULL, 0, NULL, NULL, 0, NULL, 1, 'd5cde08f58995b63', 'fc7d78659edf53fe', NULL, NULL, NULL, NULL);
INSERT INTO gnl.gnl_steps VALUES ('order-8', 'mail/44136fa355b3678a/1', 4, '', 'tool', 'mail', 'keyed', 'done', '9f2c6b3cad650b6f3', 1, 1, 1, 1796070335.3503919, 7, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1796070335.3579051, 8, '46b031068a4f0d67dae5580f43c4af498109e938871ee09badc9c96034f9b4c0', NULL, 0, NULL, NULL, 0, NULL, 1, '555cd91de7f5bc35', '4e8c7967faa342a7', NULL, NULL, NULL, NULL);
INSERT INTO gnl.gnl_steps VALUES ('order-7', 'random/ef121ed6932d09a0/1', 1, '', 'value', 'random', '', 'done', '0e6ea7b9e5f0ffe80', 1, 1, 1, 1796070335.404716, 1, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 'ef121ed6932d09a0123eb663a695573dc3d69da922a7d4aaeb2c7f6adc1b2d57', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1796070335.40492, 2, 'af6ba45bb671cd7e8e8f9144efc7e3f6d740621aa8eb57773b28ee8b00a4e04b', NULL, 0, NULL, NULL, 0, NULL, 0, '95be825f0bec5edb', '26579bef8698de85', NULL, NULL, NULL, NULL);
INSERT INTO gnl.gnl_steps VALUES ('order-7', 'look_up/44136fa355b3678a/1', 2, '', 'tool', 'look_up', 'safe', 'done', '0e6ea7b9e5f0ffe81', 1, 1, 1, 1796070335.4143662, 3, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, 1796070335.4145756, 4, 'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1', NULL, 0, NULL, NULL, 0, NULL, 0, '66e24e21ca7e0744', '6efb86fcb091ff19', NULL, NULL, NULL, NULL);
INSERT INTO gnl.gnl_steps VALUES ('order-7', 'charge/44136fa355b3678a/1', 3, '', 'tool', 'charge', 'never', 'started', '0e6ea7b9e5f0ffe82', 1, 1, 1, 1796070335.4222913, 5, '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', NULL, NULL, NULL, '[]', NULL, NULL, '[]', '[]', '[]', NULL, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 1, '30c66e0bc6432623', NULL, NULL, NULL, NULL, NULL);
ALTER TABLE ONLY gnl.gnl_attempts
    ADD CONSTRAINT gnl_attempts_pkey PRIMARY KEY (run_id, attempt);
ALTER TABLE ONLY gnl.gnl_blobs
    ADD CONSTRAINT gnl_blobs_pkey PRIMARY KEY (run_id, hash);
ALTER TABLE ONLY gnl.gnl_effects
    ADD CONSTRAINT gnl_effects_pkey PRIMARY KEY (window_run, tool, digest);
ALTER TABLE ONLY gnl.gnl_metadata
    ADD CONSTRAINT gnl_metadata_pkey PRIMARY KEY (run_id, digest);
ALTER TABLE ONLY gnl.gnl_removals
    ADD CONSTRAINT gnl_removals_pkey PRIMARY KEY (removal, run_id);
ALTER TABLE ONLY gnl.gnl_resolutions
    ADD CONSTRAINT gnl_resolutions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY gnl.gnl_runs
    ADD CONSTRAINT gnl_runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY gnl.gnl_schema
    ADD CONSTRAINT gnl_schema_pkey PRIMARY KEY (version);
ALTER TABLE ONLY gnl.gnl_steps
    ADD CONSTRAINT gnl_steps_pkey PRIMARY KEY (run_id, key);
ALTER TABLE ONLY gnl.gnl_tags
    ADD CONSTRAINT gnl_tags_pkey PRIMARY KEY (run_id, tag);
CREATE INDEX gnl_metadata_by_digest ON gnl.gnl_metadata USING btree (digest);
CREATE INDEX gnl_removals_by_run ON gnl.gnl_removals USING btree (run_id);
CREATE INDEX gnl_resolutions_by_step ON gnl.gnl_resolutions USING btree (run_id, key);
CREATE INDEX gnl_runs_by_status ON gnl.gnl_runs USING btree (status, updated_at);
CREATE INDEX gnl_runs_by_time ON gnl.gnl_runs USING btree (updated_at);
CREATE INDEX gnl_steps_by_payloads ON gnl.gnl_steps USING btree (payloads);
CREATE INDEX gnl_tags_by_tag ON gnl.gnl_tags USING btree (tag);
