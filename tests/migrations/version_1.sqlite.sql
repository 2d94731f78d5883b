BEGIN TRANSACTION;
CREATE TABLE gnl_attempts (
	run_id TEXT NOT NULL, 
	attempt BIGINT NOT NULL, 
	holder TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	status TEXT NOT NULL, 
	error TEXT, 
	PRIMARY KEY (run_id, attempt)
);
INSERT INTO "gnl_attempts" VALUES('order-8',1,'{"host":"worker-1","machine":"machine:boot","namespace":"pid:[1]","pid":77,"started":"1","nonce":"576e52bc"}',1790000000.0,1790000000.0,'completed',NULL);
INSERT INTO "gnl_attempts" VALUES('order-7',1,'{"host":"worker-1","machine":"machine:boot","namespace":"pid:[1]","pid":77,"started":"1","nonce":"4337f0c7"}',1790000000.0,1790000000.0,'interrupted','Killed: ');
CREATE TABLE gnl_blobs (
	run_id TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	compressed BIGINT NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (run_id, hash)
);
INSERT INTO "gnl_blobs" VALUES('order-8','44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',0,X'7B7D');
INSERT INTO "gnl_blobs" VALUES('order-8','393e230c4b239dab3c5cbae037067f32af6fee91cfd1d2dbd87f32db0bd4ea8e',0,X'302E3639333038383536383634303732');
INSERT INTO "gnl_blobs" VALUES('order-8','e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1',0,X'226C6F6F6B656420757022');
INSERT INTO "gnl_blobs" VALUES('order-8','a34d603ffda287f8be61c05b41a75736995ce3ff2a799ca23f84a9ed0d32ed3c',0,X'7B2263686172676564223A226F726465722D38222C22726177223A7B2224676E6C223A226279746573222C2276616C7565223A224150383D227D7D');
INSERT INTO "gnl_blobs" VALUES('order-8','46b031068a4f0d67dae5580f43c4af498109e938871ee09badc9c96034f9b4c0',1,X'7801EDD0B10000000002309728C34FA36343588A0103060C183060C0800103F703197A657ED0');
INSERT INTO "gnl_blobs" VALUES('order-7','44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',0,X'7B7D');
INSERT INTO "gnl_blobs" VALUES('order-7','ae748690b1cfb4378c9bd6933b785d99233d80b679a75c158cfdd04e17a7d10e',0,X'302E39343532323731323237373633373631');
INSERT INTO "gnl_blobs" VALUES('order-7','e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1',0,X'226C6F6F6B656420757022');
CREATE TABLE gnl_effects (
	window_run TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	owner_run TEXT NOT NULL, 
	owner_key TEXT NOT NULL, 
	claimed_at DOUBLE NOT NULL, 
	PRIMARY KEY (window_run, tool, digest)
);
CREATE TABLE gnl_resolutions (
	id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	token TEXT NOT NULL, 
	decision TEXT NOT NULL, 
	value_hash TEXT, 
	decided_by TEXT NOT NULL, 
	note TEXT NOT NULL, 
	decided_at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE gnl_runs (
	run_id TEXT NOT NULL, 
	status TEXT NOT NULL, 
	attempts BIGINT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	completed_at DOUBLE, 
	fence BIGINT NOT NULL, 
	holder TEXT, 
	lease_ends_at DOUBLE NOT NULL, 
	input_digest TEXT, 
	metadata BLOB NOT NULL, 
	side_effects BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (run_id)
);
INSERT INTO "gnl_runs" VALUES('order-8','completed',1,1790000000.0,1790000000.0,1790000000.0,1,NULL,0.0,NULL,X'7B226279223A2276657273696F6E2031227D',2);
INSERT INTO "gnl_runs" VALUES('order-7','running',1,1790000000.0,1790000000.0,NULL,1,NULL,0.0,NULL,X'7B226279223A2276657273696F6E2031227D',1);
CREATE TABLE gnl_schema (
	version INTEGER NOT NULL, 
	synced_at DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "gnl_schema" VALUES(1,1.79603358305225801463e+09);
CREATE TABLE gnl_steps (
	run_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	scope TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	policy TEXT NOT NULL, 
	status TEXT NOT NULL, 
	token TEXT NOT NULL, 
	fence BIGINT NOT NULL, 
	tries BIGINT NOT NULL, 
	attempt BIGINT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	begun BIGINT NOT NULL, 
	arguments_hash TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	reply TEXT, 
	position BIGINT, 
	call_id TEXT, 
	rounds TEXT NOT NULL, 
	shape TEXT, 
	base TEXT, 
	setups TEXT NOT NULL, 
	answered TEXT NOT NULL, 
	calls TEXT NOT NULL, 
	reply_digest TEXT, 
	tokens BIGINT NOT NULL, 
	finished_at DOUBLE, 
	ended BIGINT, 
	value_hash TEXT, 
	failure BLOB, 
	raw BIGINT NOT NULL, 
	blocked TEXT, 
	resolution TEXT, 
	drifted BIGINT NOT NULL, 
	late BLOB, 
	side_effect BIGINT NOT NULL, 
	intent_seal TEXT NOT NULL, 
	outcome_seal TEXT, 
	PRIMARY KEY (run_id, "key")
);
INSERT INTO "gnl_steps" VALUES('order-8','random/ef121ed6932d09a0/1',1,'','value','random','','done','ad7d1bd265aaa5d7',1,1,1,1790000000.0,1,'44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a','ef121ed6932d09a0123eb663a695573dc3d69da922a7d4aaeb2c7f6adc1b2d57',NULL,NULL,NULL,'[]',NULL,NULL,'[]','[]','[]',NULL,0,1790000000.0,2,'393e230c4b239dab3c5cbae037067f32af6fee91cfd1d2dbd87f32db0bd4ea8e',NULL,0,NULL,NULL,0,NULL,0,'e9d9bbf83af608ec','fa9795243bc3d92c');
INSERT INTO "gnl_steps" VALUES('order-8','look_up/44136fa355b3678a/1',2,'','tool','look_up','safe','done','9f2b5ff4a647cf97',1,1,1,1790000000.0,3,'44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a','44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',NULL,NULL,NULL,'[]',NULL,NULL,'[]','[]','[]',NULL,0,1790000000.0,4,'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1',NULL,0,NULL,NULL,0,NULL,0,'c77f56301c069afc','4fd28cc94a72cce0');
INSERT INTO "gnl_steps" VALUES('order-8','charge/44136fa355b3678a/1',3,'','tool','charge','never','done','e96bff7241e3e883',1,1,1,1790000000.0,5,'44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a','44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',NULL,NULL,NULL,'[]',NULL,NULL,'[]','[]','[]',NULL,0,1790000000.0,6,'a34d603ffda287f8be61c05b41a75736995ce3ff2a799ca23f84a9ed0d32ed3c',NULL,0,NULL,NULL,0,NULL,1,'52577d65d48069fd','aae94690e9fe11ae');
INSERT INTO "gnl_steps" VALUES('order-8','mail/44136fa355b3678a/1',4,'','tool','mail','keyed','done','ba4012b9625260ef',1,1,1,1790000000.0,7,'44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a','44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',NULL,NULL,NULL,'[]',NULL,NULL,'[]','[]','[]',NULL,0,1790000000.0,8,'46b031068a4f0d67dae5580f43c4af498109e938871ee09badc9c96034f9b4c0',NULL,0,NULL,NULL,0,NULL,1,'06074383bd4bdb9b','0d7ee20fcf6a6f91');
INSERT INTO "gnl_steps" VALUES('order-7','random/ef121ed6932d09a0/1',1,'','value','random','','done','309aad1168712426',1,1,1,1790000000.0,1,'44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a','ef121ed6932d09a0123eb663a695573dc3d69da922a7d4aaeb2c7f6adc1b2d57',NULL,NULL,NULL,'[]',NULL,NULL,'[]','[]','[]',NULL,0,1790000000.0,2,'ae748690b1cfb4378c9bd6933b785d99233d80b679a75c158cfdd04e17a7d10e',NULL,0,NULL,NULL,0,NULL,0,'ca30b9c3a2581f6b','863f5494621e5dbc');
INSERT INTO "gnl_steps" VALUES('order-7','look_up/44136fa355b3678a/1',2,'','tool','look_up','safe','done','80e695d9cad1dba3',1,1,1,1790000000.0,3,'44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a','44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',NULL,NULL,NULL,'[]',NULL,NULL,'[]','[]','[]',NULL,0,1790000000.0,4,'e7ffa76355af1bb88e1cee184438fd413ab18d595bb76700f3b55d3322e110c1',NULL,0,NULL,NULL,0,NULL,0,'d2b4542935b0f82f','f8154e152b00acea');
INSERT INTO "gnl_steps" VALUES('order-7','charge/44136fa355b3678a/1',3,'','tool','charge','never','started','d132a881495e57ce',1,1,1,1790000000.0,5,'44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a','44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',NULL,NULL,NULL,'[]',NULL,NULL,'[]','[]','[]',NULL,0,NULL,NULL,NULL,NULL,0,NULL,NULL,0,NULL,1,'414c84ec2f9a0ffa',NULL);
CREATE INDEX gnl_runs_by_status ON gnl_runs (status, updated_at);
CREATE INDEX gnl_resolutions_by_step ON gnl_resolutions (run_id, "key");
COMMIT;
