PRAGMA application_id = 1111576139;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE account (
	account_id TEXT NOT NULL, 
	customer_id TEXT, 
	account_name TEXT NOT NULL, 
	account_type TEXT NOT NULL, 
	can_transfer_from BOOLEAN NOT NULL, 
	can_transfer_to BOOLEAN NOT NULL, 
	is_locked BOOLEAN NOT NULL, 
	account_holder TEXT, 
	currency TEXT NOT NULL, 
	PRIMARY KEY (account_id), 
	UNIQUE (account_id, currency), 
	CONSTRAINT account_type_is_known CHECK (account_type IN ('checking', 'savings', 'retirement', 'deposit', 'external', 'equity')), 
	CONSTRAINT currency_is_a_code CHECK (currency GLOB '[A-Z][A-Z][A-Z]'), 
	CONSTRAINT equity_is_the_banks_own CHECK ((account_type = 'equity') = (customer_id IS NULL)), 
	CONSTRAINT flags_are_flags CHECK (can_transfer_from IN (0, 1) AND can_transfer_to IN (0, 1) AND is_locked IN (0, 1)), 
	FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
);
INSERT INTO "account" VALUES('acc_checking_001','CUST001','Primary Checking','checking',1,1,1,NULL,'USD');
INSERT INTO "account" VALUES('acc_savings_001','CUST001','High Yield Savings','savings',1,1,0,NULL,'USD');
INSERT INTO "account" VALUES('acc_everyday_001','CUST001','Everyday Checking','checking',1,1,0,NULL,'USD');
INSERT INTO "account" VALUES('acc_retirement_001','CUST001','Retirement Fund','retirement',0,1,0,NULL,'USD');
INSERT INTO "account" VALUES('acc_deposit_001','CUST001','Fixed Deposit','deposit',0,0,0,NULL,'USD');
INSERT INTO "account" VALUES('acc_euro_001','CUST001','Euro Account','checking',1,1,0,NULL,'EUR');
INSERT INTO "account" VALUES('acc_payee_001','CUST001','Rent Payments','external',0,1,0,'Fictional Homes Ltd','USD');
INSERT INTO "account" VALUES('acc_checking_002','CUST002','Main Checking','checking',1,1,0,NULL,'USD');
INSERT INTO "account" VALUES('acc_savings_002','CUST002','Rainy Day Savings','savings',1,1,0,NULL,'USD');
INSERT INTO "account" VALUES('acc_payee_002','CUST002','Guitar Lessons','external',0,1,0,'Imaginary Music School','USD');
INSERT INTO "account" VALUES('acc_checking_003','CUST003','Household Checking','checking',1,1,0,NULL,'USD');
INSERT INTO "account" VALUES('acc_savings_003','CUST003','Holiday Savings','savings',1,1,0,NULL,'USD');
INSERT INTO "account" VALUES('acc_equity_eur',NULL,'The bank''s own EUR','equity',0,0,0,NULL,'EUR');
INSERT INTO "account" VALUES('acc_equity_usd',NULL,'The bank''s own USD','equity',0,0,0,NULL,'USD');
CREATE TABLE approval (
	approval_id TEXT NOT NULL, 
	transfer_id TEXT NOT NULL, 
	customer_id TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	status TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	decided_by TEXT, 
	decided_at TEXT, 
	PRIMARY KEY (approval_id), 
	CONSTRAINT status_is_known CHECK (status IN ('requested', 'granted', 'refused')), 
	CONSTRAINT decided_has_its_manager CHECK ((status = 'requested') = (decided_by IS NULL) AND (status = 'requested') = (decided_at IS NULL)), 
	UNIQUE (transfer_id), 
	FOREIGN KEY(transfer_id) REFERENCES transfer (transfer_id), 
	FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
);
INSERT INTO "approval" VALUES('ap_9cb5df6323aecc75','tr_3728e30e0898e4b4','CUST001','A house','requested','2026-03-04T10:00:00.000000Z',NULL,NULL);
CREATE TABLE audit_event (
	event_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at TEXT NOT NULL, 
	customer_id TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	subject TEXT, 
	chain_id TEXT, 
	chain_level INTEGER, 
	chain_previous_tool TEXT
);
INSERT INTO "audit_event" VALUES(1,'2026-03-04T10:00:00.000000Z','CUST001','prepare_money_transfer','prepared','tr_eca2d4fd229748fe',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(2,'2026-03-04T10:00:00.000000Z','CUST001','confirm_or_cancel_money_transfer','posted','tr_eca2d4fd229748fe',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(3,'2026-03-04T10:00:00.000000Z','CUST001','prepare_money_transfer','prepared','tr_08ea41f165ec3520',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(4,'2026-03-04T10:00:00.000000Z','CUST001','confirm_or_cancel_money_transfer','posted','tr_08ea41f165ec3520',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(5,'2026-03-04T10:00:00.000000Z','CUST001','report_compliance_event','report_recorded','cr_ecb9f1dfcc541039',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(6,'2026-03-04T10:00:00.000000Z','CUST001','prepare_money_transfer','prepared','tr_47ede2e78351f0a3',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(7,'2026-03-01T10:00:00.000000Z','CUST001','confirm_or_cancel_money_transfer','posted','tr_47ede2e78351f0a3',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(8,'2026-03-04T10:00:00.000000Z','CUST001','prepare_money_transfer','prepared','tr_3c12dbe47f259579',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(9,'2026-03-04T10:00:00.000000Z','CUST001','confirm_or_cancel_money_transfer','scheduled','tr_3c12dbe47f259579',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(10,'2026-03-04T10:00:00.000000Z','CUST001','prepare_money_transfer','prepared','tr_7cc9f233d42d7afd',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(11,'2026-03-04T11:00:00.000000Z','CUST001','prepare_money_transfer','prepared','tr_ea35956f3689b4ae',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(12,'2026-03-04T11:00:00.000000Z','CUST001','confirm_or_cancel_money_transfer','wrong_code','tr_ea35956f3689b4ae',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(13,'2026-03-04T10:00:00.000000Z','CUST001','prepare_money_transfer','prepared','tr_54374628faf1bf43',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(14,'2026-03-04T10:00:00.000000Z','CUST001','confirm_or_cancel_money_transfer','cancelled','tr_54374628faf1bf43',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(15,'2026-03-04T10:00:00.000000Z','CUST001','prepare_money_transfer','over_threshold','tr_3728e30e0898e4b4',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(16,'2026-03-04T10:00:00.000000Z','CUST001','request_manager_approval','approval_requested','ap_9cb5df6323aecc75',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(17,'2026-03-04T10:00:00.000000Z','CUST001','request_agent_handoff','handoff_opened','ho_ede5c2dd75e5f6dd',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(18,'2026-03-04T10:00:00.000000Z','CUST002','request_agent_handoff','handoff_opened','ho_895a3ecf3b80db5b',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(19,'2026-03-04T10:00:00.000000Z','CUST001','handoffs claim','claimed','ho_ede5c2dd75e5f6dd',NULL,NULL,NULL);
INSERT INTO "audit_event" VALUES(20,'2026-03-04T10:00:00.000000Z','CUST001','prepare_money_transfer','account_locked','acc_checking_001',NULL,NULL,NULL);
CREATE TABLE compliance_report (
	report_id TEXT NOT NULL, 
	transfer_id TEXT NOT NULL, 
	rule TEXT NOT NULL, 
	customer_id TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	PRIMARY KEY (report_id), 
	UNIQUE (transfer_id, rule), 
	FOREIGN KEY(transfer_id) REFERENCES transfer (transfer_id), 
	FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
);
INSERT INTO "compliance_report" VALUES('cr_ecb9f1dfcc541039','tr_08ea41f165ec3520','external-payee-3000','CUST001','2026-03-04T10:00:00.000000Z');
CREATE TABLE customer (
	customer_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (customer_id)
);
INSERT INTO "customer" VALUES('CUST001','Avery Sample');
INSERT INTO "customer" VALUES('CUST002','Robin Placeholder');
INSERT INTO "customer" VALUES('CUST003','Kim Specimen');
CREATE TABLE entry (
	entry_id INTEGER NOT NULL, 
	posting_id INTEGER NOT NULL, 
	side TEXT NOT NULL, 
	account_id TEXT NOT NULL, 
	amount_minor INTEGER NOT NULL, 
	currency TEXT NOT NULL, 
	PRIMARY KEY (entry_id), 
	FOREIGN KEY(account_id, currency) REFERENCES account (account_id, currency), 
	UNIQUE (posting_id, side), 
	UNIQUE (posting_id, account_id), 
	CONSTRAINT side_is_known CHECK (side IN ('debit', 'credit')), 
	CONSTRAINT sign_fits_side CHECK (typeof(amount_minor) = 'integer' AND amount_minor <> 0 AND (side = 'debit') = (amount_minor < 0)), 
	FOREIGN KEY(posting_id) REFERENCES posting (posting_id)
);
INSERT INTO "entry" VALUES(1,1,'debit','acc_equity_usd',-337634,'USD');
INSERT INTO "entry" VALUES(2,1,'credit','acc_checking_001',337634,'USD');
INSERT INTO "entry" VALUES(3,2,'debit','acc_equity_usd',-2437625,'USD');
INSERT INTO "entry" VALUES(4,2,'credit','acc_savings_001',2437625,'USD');
INSERT INTO "entry" VALUES(5,3,'debit','acc_equity_usd',-103501,'USD');
INSERT INTO "entry" VALUES(6,3,'credit','acc_everyday_001',103501,'USD');
INSERT INTO "entry" VALUES(7,4,'debit','acc_equity_usd',-8180000,'USD');
INSERT INTO "entry" VALUES(8,4,'credit','acc_retirement_001',8180000,'USD');
INSERT INTO "entry" VALUES(9,5,'debit','acc_equity_usd',-1487500,'USD');
INSERT INTO "entry" VALUES(10,5,'credit','acc_deposit_001',1487500,'USD');
INSERT INTO "entry" VALUES(11,6,'debit','acc_equity_eur',-274890,'EUR');
INSERT INTO "entry" VALUES(12,6,'credit','acc_euro_001',274890,'EUR');
INSERT INTO "entry" VALUES(13,7,'debit','acc_equity_usd',-262460,'USD');
INSERT INTO "entry" VALUES(14,7,'credit','acc_checking_002',262460,'USD');
INSERT INTO "entry" VALUES(15,8,'debit','acc_equity_usd',-1178020,'USD');
INSERT INTO "entry" VALUES(16,8,'credit','acc_savings_002',1178020,'USD');
INSERT INTO "entry" VALUES(17,9,'debit','acc_equity_usd',-36325,'USD');
INSERT INTO "entry" VALUES(18,9,'credit','acc_checking_003',36325,'USD');
INSERT INTO "entry" VALUES(19,10,'debit','acc_equity_usd',-264540,'USD');
INSERT INTO "entry" VALUES(20,10,'credit','acc_savings_003',264540,'USD');
INSERT INTO "entry" VALUES(21,11,'debit','acc_equity_usd',-4125,'USD');
INSERT INTO "entry" VALUES(22,11,'credit','acc_savings_001',4125,'USD');
INSERT INTO "entry" VALUES(23,12,'debit','acc_equity_usd',-190000,'USD');
INSERT INTO "entry" VALUES(24,12,'credit','acc_everyday_001',190000,'USD');
INSERT INTO "entry" VALUES(25,13,'debit','acc_equity_usd',-30000,'USD');
INSERT INTO "entry" VALUES(26,13,'credit','acc_retirement_001',30000,'USD');
INSERT INTO "entry" VALUES(27,14,'debit','acc_everyday_001',-25000,'USD');
INSERT INTO "entry" VALUES(28,14,'credit','acc_savings_001',25000,'USD');
INSERT INTO "entry" VALUES(29,15,'debit','acc_everyday_001',-70000,'USD');
INSERT INTO "entry" VALUES(30,15,'credit','acc_payee_001',70000,'USD');
INSERT INTO "entry" VALUES(31,16,'debit','acc_equity_usd',-4125,'USD');
INSERT INTO "entry" VALUES(32,16,'credit','acc_savings_001',4125,'USD');
INSERT INTO "entry" VALUES(33,17,'debit','acc_everyday_001',-629,'USD');
INSERT INTO "entry" VALUES(34,17,'credit','acc_equity_usd',629,'USD');
INSERT INTO "entry" VALUES(35,18,'debit','acc_everyday_001',-775,'USD');
INSERT INTO "entry" VALUES(36,18,'credit','acc_equity_usd',775,'USD');
INSERT INTO "entry" VALUES(37,19,'debit','acc_everyday_001',-3481,'USD');
INSERT INTO "entry" VALUES(38,19,'credit','acc_equity_usd',3481,'USD');
INSERT INTO "entry" VALUES(39,20,'debit','acc_everyday_001',-1378,'USD');
INSERT INTO "entry" VALUES(40,20,'credit','acc_equity_usd',1378,'USD');
INSERT INTO "entry" VALUES(41,21,'debit','acc_everyday_001',-1167,'USD');
INSERT INTO "entry" VALUES(42,21,'credit','acc_equity_usd',1167,'USD');
INSERT INTO "entry" VALUES(43,22,'debit','acc_everyday_001',-1524,'USD');
INSERT INTO "entry" VALUES(44,22,'credit','acc_equity_usd',1524,'USD');
INSERT INTO "entry" VALUES(45,23,'debit','acc_everyday_001',-899,'USD');
INSERT INTO "entry" VALUES(46,23,'credit','acc_equity_usd',899,'USD');
INSERT INTO "entry" VALUES(47,24,'debit','acc_checking_001',-1520,'USD');
INSERT INTO "entry" VALUES(48,24,'credit','acc_equity_usd',1520,'USD');
INSERT INTO "entry" VALUES(49,25,'debit','acc_everyday_001',-1877,'USD');
INSERT INTO "entry" VALUES(50,25,'credit','acc_equity_usd',1877,'USD');
INSERT INTO "entry" VALUES(51,26,'debit','acc_everyday_001',-1716,'USD');
INSERT INTO "entry" VALUES(52,26,'credit','acc_equity_usd',1716,'USD');
INSERT INTO "entry" VALUES(53,27,'debit','acc_everyday_001',-1342,'USD');
INSERT INTO "entry" VALUES(54,27,'credit','acc_equity_usd',1342,'USD');
INSERT INTO "entry" VALUES(55,28,'debit','acc_everyday_001',-4778,'USD');
INSERT INTO "entry" VALUES(56,28,'credit','acc_equity_usd',4778,'USD');
INSERT INTO "entry" VALUES(57,29,'debit','acc_everyday_001',-406,'USD');
INSERT INTO "entry" VALUES(58,29,'credit','acc_equity_usd',406,'USD');
INSERT INTO "entry" VALUES(59,30,'debit','acc_everyday_001',-1992,'USD');
INSERT INTO "entry" VALUES(60,30,'credit','acc_equity_usd',1992,'USD');
INSERT INTO "entry" VALUES(61,31,'debit','acc_everyday_001',-590,'USD');
INSERT INTO "entry" VALUES(62,31,'credit','acc_equity_usd',590,'USD');
INSERT INTO "entry" VALUES(63,32,'debit','acc_everyday_001',-810,'USD');
INSERT INTO "entry" VALUES(64,32,'credit','acc_equity_usd',810,'USD');
INSERT INTO "entry" VALUES(65,33,'debit','acc_everyday_001',-406,'USD');
INSERT INTO "entry" VALUES(66,33,'credit','acc_equity_usd',406,'USD');
INSERT INTO "entry" VALUES(67,34,'debit','acc_everyday_001',-699,'USD');
INSERT INTO "entry" VALUES(68,34,'credit','acc_equity_usd',699,'USD');
INSERT INTO "entry" VALUES(69,35,'debit','acc_everyday_001',-2007,'USD');
INSERT INTO "entry" VALUES(70,35,'credit','acc_equity_usd',2007,'USD');
INSERT INTO "entry" VALUES(71,36,'debit','acc_everyday_001',-4824,'USD');
INSERT INTO "entry" VALUES(72,36,'credit','acc_equity_usd',4824,'USD');
INSERT INTO "entry" VALUES(73,37,'debit','acc_everyday_001',-1539,'USD');
INSERT INTO "entry" VALUES(74,37,'credit','acc_equity_usd',1539,'USD');
INSERT INTO "entry" VALUES(75,38,'debit','acc_everyday_001',-3313,'USD');
INSERT INTO "entry" VALUES(76,38,'credit','acc_equity_usd',3313,'USD');
INSERT INTO "entry" VALUES(77,39,'debit','acc_checking_001',-11800,'USD');
INSERT INTO "entry" VALUES(78,39,'credit','acc_equity_usd',11800,'USD');
INSERT INTO "entry" VALUES(79,40,'debit','acc_everyday_001',-1833,'USD');
INSERT INTO "entry" VALUES(80,40,'credit','acc_equity_usd',1833,'USD');
INSERT INTO "entry" VALUES(81,41,'debit','acc_everyday_001',-1177,'USD');
INSERT INTO "entry" VALUES(82,41,'credit','acc_equity_usd',1177,'USD');
INSERT INTO "entry" VALUES(83,42,'debit','acc_everyday_001',-637,'USD');
INSERT INTO "entry" VALUES(84,42,'credit','acc_equity_usd',637,'USD');
INSERT INTO "entry" VALUES(85,43,'debit','acc_equity_eur',-50000,'EUR');
INSERT INTO "entry" VALUES(86,43,'credit','acc_euro_001',50000,'EUR');
INSERT INTO "entry" VALUES(87,44,'debit','acc_everyday_001',-1480,'USD');
INSERT INTO "entry" VALUES(88,44,'credit','acc_equity_usd',1480,'USD');
INSERT INTO "entry" VALUES(89,45,'debit','acc_everyday_001',-2050,'USD');
INSERT INTO "entry" VALUES(90,45,'credit','acc_equity_usd',2050,'USD');
INSERT INTO "entry" VALUES(91,46,'debit','acc_everyday_001',-5002,'USD');
INSERT INTO "entry" VALUES(92,46,'credit','acc_equity_usd',5002,'USD');
INSERT INTO "entry" VALUES(93,47,'debit','acc_everyday_001',-2439,'USD');
INSERT INTO "entry" VALUES(94,47,'credit','acc_equity_usd',2439,'USD');
INSERT INTO "entry" VALUES(95,48,'debit','acc_equity_usd',-190000,'USD');
INSERT INTO "entry" VALUES(96,48,'credit','acc_everyday_001',190000,'USD');
INSERT INTO "entry" VALUES(97,49,'debit','acc_checking_003',-10000,'USD');
INSERT INTO "entry" VALUES(98,49,'credit','acc_savings_003',10000,'USD');
INSERT INTO "entry" VALUES(99,50,'debit','acc_everyday_001',-5844,'USD');
INSERT INTO "entry" VALUES(100,50,'credit','acc_equity_usd',5844,'USD');
INSERT INTO "entry" VALUES(101,51,'debit','acc_everyday_001',-447,'USD');
INSERT INTO "entry" VALUES(102,51,'credit','acc_equity_usd',447,'USD');
INSERT INTO "entry" VALUES(103,52,'debit','acc_equity_usd',-12500,'USD');
INSERT INTO "entry" VALUES(104,52,'credit','acc_deposit_001',12500,'USD');
INSERT INTO "entry" VALUES(105,53,'debit','acc_everyday_001',-371,'USD');
INSERT INTO "entry" VALUES(106,53,'credit','acc_equity_usd',371,'USD');
INSERT INTO "entry" VALUES(107,54,'debit','acc_everyday_001',-1281,'USD');
INSERT INTO "entry" VALUES(108,54,'credit','acc_equity_usd',1281,'USD');
INSERT INTO "entry" VALUES(109,55,'debit','acc_everyday_001',-1118,'USD');
INSERT INTO "entry" VALUES(110,55,'credit','acc_equity_usd',1118,'USD');
INSERT INTO "entry" VALUES(111,56,'debit','acc_checking_002',-20000,'USD');
INSERT INTO "entry" VALUES(112,56,'credit','acc_savings_002',20000,'USD');
INSERT INTO "entry" VALUES(113,57,'debit','acc_everyday_001',-314,'USD');
INSERT INTO "entry" VALUES(114,57,'credit','acc_equity_usd',314,'USD');
INSERT INTO "entry" VALUES(115,58,'debit','acc_everyday_001',-2468,'USD');
INSERT INTO "entry" VALUES(116,58,'credit','acc_equity_usd',2468,'USD');
INSERT INTO "entry" VALUES(117,59,'debit','acc_everyday_001',-885,'USD');
INSERT INTO "entry" VALUES(118,59,'credit','acc_equity_usd',885,'USD');
INSERT INTO "entry" VALUES(119,60,'debit','acc_equity_usd',-210000,'USD');
INSERT INTO "entry" VALUES(120,60,'credit','acc_checking_001',210000,'USD');
INSERT INTO "entry" VALUES(121,61,'debit','acc_equity_usd',-145000,'USD');
INSERT INTO "entry" VALUES(122,61,'credit','acc_checking_003',145000,'USD');
INSERT INTO "entry" VALUES(123,62,'debit','acc_everyday_001',-1358,'USD');
INSERT INTO "entry" VALUES(124,62,'credit','acc_equity_usd',1358,'USD');
INSERT INTO "entry" VALUES(125,63,'debit','acc_everyday_001',-1279,'USD');
INSERT INTO "entry" VALUES(126,63,'credit','acc_equity_usd',1279,'USD');
INSERT INTO "entry" VALUES(127,64,'debit','acc_everyday_001',-568,'USD');
INSERT INTO "entry" VALUES(128,64,'credit','acc_equity_usd',568,'USD');
INSERT INTO "entry" VALUES(129,65,'debit','acc_everyday_001',-1350,'USD');
INSERT INTO "entry" VALUES(130,65,'credit','acc_equity_usd',1350,'USD');
INSERT INTO "entry" VALUES(131,66,'debit','acc_checking_002',-8460,'USD');
INSERT INTO "entry" VALUES(132,66,'credit','acc_equity_usd',8460,'USD');
INSERT INTO "entry" VALUES(133,67,'debit','acc_everyday_001',-287,'USD');
INSERT INTO "entry" VALUES(134,67,'credit','acc_equity_usd',287,'USD');
INSERT INTO "entry" VALUES(135,68,'debit','acc_everyday_001',-899,'USD');
INSERT INTO "entry" VALUES(136,68,'credit','acc_equity_usd',899,'USD');
INSERT INTO "entry" VALUES(137,69,'debit','acc_equity_usd',-30000,'USD');
INSERT INTO "entry" VALUES(138,69,'credit','acc_retirement_001',30000,'USD');
INSERT INTO "entry" VALUES(139,70,'debit','acc_everyday_001',-1617,'USD');
INSERT INTO "entry" VALUES(140,70,'credit','acc_equity_usd',1617,'USD');
INSERT INTO "entry" VALUES(141,71,'debit','acc_everyday_001',-6505,'USD');
INSERT INTO "entry" VALUES(142,71,'credit','acc_equity_usd',6505,'USD');
INSERT INTO "entry" VALUES(143,72,'debit','acc_checking_003',-5310,'USD');
INSERT INTO "entry" VALUES(144,72,'credit','acc_equity_usd',5310,'USD');
INSERT INTO "entry" VALUES(145,73,'debit','acc_everyday_001',-3077,'USD');
INSERT INTO "entry" VALUES(146,73,'credit','acc_equity_usd',3077,'USD');
INSERT INTO "entry" VALUES(147,74,'debit','acc_everyday_001',-2399,'USD');
INSERT INTO "entry" VALUES(148,74,'credit','acc_equity_usd',2399,'USD');
INSERT INTO "entry" VALUES(149,75,'debit','acc_checking_001',-2999,'USD');
INSERT INTO "entry" VALUES(150,75,'credit','acc_equity_usd',2999,'USD');
INSERT INTO "entry" VALUES(151,76,'debit','acc_everyday_001',-3143,'USD');
INSERT INTO "entry" VALUES(152,76,'credit','acc_equity_usd',3143,'USD');
INSERT INTO "entry" VALUES(153,77,'debit','acc_checking_002',-12000,'USD');
INSERT INTO "entry" VALUES(154,77,'credit','acc_payee_002',12000,'USD');
INSERT INTO "entry" VALUES(155,78,'debit','acc_everyday_001',-1033,'USD');
INSERT INTO "entry" VALUES(156,78,'credit','acc_equity_usd',1033,'USD');
INSERT INTO "entry" VALUES(157,79,'debit','acc_everyday_001',-25000,'USD');
INSERT INTO "entry" VALUES(158,79,'credit','acc_savings_001',25000,'USD');
INSERT INTO "entry" VALUES(159,80,'debit','acc_everyday_001',-973,'USD');
INSERT INTO "entry" VALUES(160,80,'credit','acc_equity_usd',973,'USD');
INSERT INTO "entry" VALUES(161,81,'debit','acc_everyday_001',-6479,'USD');
INSERT INTO "entry" VALUES(162,81,'credit','acc_equity_usd',6479,'USD');
INSERT INTO "entry" VALUES(163,82,'debit','acc_everyday_001',-70000,'USD');
INSERT INTO "entry" VALUES(164,82,'credit','acc_payee_001',70000,'USD');
INSERT INTO "entry" VALUES(165,83,'debit','acc_everyday_001',-585,'USD');
INSERT INTO "entry" VALUES(166,83,'credit','acc_equity_usd',585,'USD');
INSERT INTO "entry" VALUES(167,84,'debit','acc_everyday_001',-2981,'USD');
INSERT INTO "entry" VALUES(168,84,'credit','acc_equity_usd',2981,'USD');
INSERT INTO "entry" VALUES(169,85,'debit','acc_checking_003',-70000,'USD');
INSERT INTO "entry" VALUES(170,85,'credit','acc_equity_usd',70000,'USD');
INSERT INTO "entry" VALUES(171,86,'debit','acc_everyday_001',-1042,'USD');
INSERT INTO "entry" VALUES(172,86,'credit','acc_equity_usd',1042,'USD');
INSERT INTO "entry" VALUES(173,87,'debit','acc_euro_001',-4890,'EUR');
INSERT INTO "entry" VALUES(174,87,'credit','acc_equity_eur',4890,'EUR');
INSERT INTO "entry" VALUES(175,88,'debit','acc_everyday_001',-503,'USD');
INSERT INTO "entry" VALUES(176,88,'credit','acc_equity_usd',503,'USD');
INSERT INTO "entry" VALUES(177,89,'debit','acc_everyday_001',-1385,'USD');
INSERT INTO "entry" VALUES(178,89,'credit','acc_equity_usd',1385,'USD');
INSERT INTO "entry" VALUES(179,90,'debit','acc_checking_001',-6240,'USD');
INSERT INTO "entry" VALUES(180,90,'credit','acc_equity_usd',6240,'USD');
INSERT INTO "entry" VALUES(181,91,'debit','acc_everyday_001',-2358,'USD');
INSERT INTO "entry" VALUES(182,91,'credit','acc_equity_usd',2358,'USD');
INSERT INTO "entry" VALUES(183,92,'debit','acc_equity_usd',-190000,'USD');
INSERT INTO "entry" VALUES(184,92,'credit','acc_checking_002',190000,'USD');
INSERT INTO "entry" VALUES(185,93,'debit','acc_everyday_001',-459,'USD');
INSERT INTO "entry" VALUES(186,93,'credit','acc_equity_usd',459,'USD');
INSERT INTO "entry" VALUES(187,94,'debit','acc_everyday_001',-2676,'USD');
INSERT INTO "entry" VALUES(188,94,'credit','acc_equity_usd',2676,'USD');
INSERT INTO "entry" VALUES(189,95,'debit','acc_equity_usd',-4125,'USD');
INSERT INTO "entry" VALUES(190,95,'credit','acc_savings_001',4125,'USD');
INSERT INTO "entry" VALUES(191,96,'debit','acc_equity_usd',-1980,'USD');
INSERT INTO "entry" VALUES(192,96,'credit','acc_savings_002',1980,'USD');
INSERT INTO "entry" VALUES(193,97,'debit','acc_equity_usd',-460,'USD');
INSERT INTO "entry" VALUES(194,97,'credit','acc_savings_003',460,'USD');
INSERT INTO "entry" VALUES(195,98,'debit','acc_everyday_001',-1433,'USD');
INSERT INTO "entry" VALUES(196,98,'credit','acc_equity_usd',1433,'USD');
INSERT INTO "entry" VALUES(197,99,'debit','acc_everyday_001',-574,'USD');
INSERT INTO "entry" VALUES(198,99,'credit','acc_equity_usd',574,'USD');
INSERT INTO "entry" VALUES(199,100,'debit','acc_everyday_001',-2550,'USD');
INSERT INTO "entry" VALUES(200,100,'credit','acc_savings_001',2550,'USD');
INSERT INTO "entry" VALUES(201,101,'debit','acc_savings_001',-300000,'USD');
INSERT INTO "entry" VALUES(202,101,'credit','acc_payee_001',300000,'USD');
INSERT INTO "entry" VALUES(203,102,'debit','acc_savings_001',-700,'USD');
INSERT INTO "entry" VALUES(204,102,'credit','acc_everyday_001',700,'USD');
CREATE TABLE handoff (
	handoff_id TEXT NOT NULL, 
	customer_id TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	choice TEXT, 
	status TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	claimed_by TEXT, 
	claimed_at TEXT, 
	PRIMARY KEY (handoff_id), 
	CONSTRAINT choice_is_known CHECK (choice IN ('realtime', 'callback')), 
	CONSTRAINT status_is_known CHECK (status IN ('open', 'claimed')), 
	CONSTRAINT claimed_has_its_agent CHECK ((status = 'claimed') = (claimed_by IS NOT NULL) AND (status = 'claimed') = (claimed_at IS NOT NULL)), 
	FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
);
INSERT INTO "handoff" VALUES('ho_ede5c2dd75e5f6dd','CUST001','Help','callback','claimed','2026-03-04T10:00:00.000000Z','Ada','2026-03-04T10:00:00.000000Z');
INSERT INTO "handoff" VALUES('ho_895a3ecf3b80db5b','CUST002','Customer asked to speak with an agent',NULL,'open','2026-03-04T10:00:00.000000Z',NULL,NULL);
CREATE TABLE posting (
	posting_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	kind TEXT NOT NULL, 
	description TEXT NOT NULL, 
	posted_at TEXT NOT NULL, 
	transfer_id TEXT, 
	CONSTRAINT kind_is_known CHECK (kind IN ('opening', 'history', 'transfer')), 
	CONSTRAINT transfers_are_named CHECK ((kind = 'transfer') = (transfer_id IS NOT NULL)), 
	UNIQUE (transfer_id), 
	FOREIGN KEY(transfer_id) REFERENCES transfer (transfer_id)
);
INSERT INTO "posting" VALUES(1,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(2,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(3,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(4,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(5,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(6,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(7,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(8,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(9,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(10,'opening','Opening balance','2026-01-01T00:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(11,'history','Interest','2026-01-02T00:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(12,'history','Salary, Example Works','2026-01-17T06:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(13,'history','Employer contribution','2026-01-23T10:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(14,'history','Monthly saving','2026-01-27T09:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(15,'history','Rent','2026-01-28T09:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(16,'history','Interest','2026-02-01T00:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(17,'history','Paper Cup Coffee','2026-02-02T12:19:00.000000Z',NULL);
INSERT INTO "posting" VALUES(18,'history','Corner Bakery Example','2026-02-02T17:33:00.000000Z',NULL);
INSERT INTO "posting" VALUES(19,'history','Sample Grocers','2026-02-03T12:01:00.000000Z',NULL);
INSERT INTO "posting" VALUES(20,'history','Specimen Cinema','2026-02-03T16:44:00.000000Z',NULL);
INSERT INTO "posting" VALUES(21,'history','Corner Bakery Example','2026-02-04T09:06:00.000000Z',NULL);
INSERT INTO "posting" VALUES(22,'history','Specimen Cinema','2026-02-04T17:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(23,'history','Corner Bakery Example','2026-02-05T08:54:00.000000Z',NULL);
INSERT INTO "posting" VALUES(24,'history','Paper Cup Coffee','2026-02-05T12:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(25,'history','Test Pharmacy','2026-02-05T18:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(26,'history','Imaginary Noodles','2026-02-06T09:40:00.000000Z',NULL);
INSERT INTO "posting" VALUES(27,'history','Specimen Cinema','2026-02-06T19:23:00.000000Z',NULL);
INSERT INTO "posting" VALUES(28,'history','Sample Grocers','2026-02-07T12:06:00.000000Z',NULL);
INSERT INTO "posting" VALUES(29,'history','Paper Cup Coffee','2026-02-07T15:55:00.000000Z',NULL);
INSERT INTO "posting" VALUES(30,'history','Test Pharmacy','2026-02-08T09:07:00.000000Z',NULL);
INSERT INTO "posting" VALUES(31,'history','Paper Cup Coffee','2026-02-08T15:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(32,'history','Corner Bakery Example','2026-02-09T11:40:00.000000Z',NULL);
INSERT INTO "posting" VALUES(33,'history','Paper Cup Coffee','2026-02-09T16:04:00.000000Z',NULL);
INSERT INTO "posting" VALUES(34,'history','Paper Cup Coffee','2026-02-10T11:57:00.000000Z',NULL);
INSERT INTO "posting" VALUES(35,'history','Imaginary Noodles','2026-02-10T18:25:00.000000Z',NULL);
INSERT INTO "posting" VALUES(36,'history','Sample Grocers','2026-02-11T11:34:00.000000Z',NULL);
INSERT INTO "posting" VALUES(37,'history','Specimen Cinema','2026-02-11T16:44:00.000000Z',NULL);
INSERT INTO "posting" VALUES(38,'history','Placeholder Books','2026-02-12T08:31:00.000000Z',NULL);
INSERT INTO "posting" VALUES(39,'history','Power and Water Example','2026-02-12T10:45:00.000000Z',NULL);
INSERT INTO "posting" VALUES(40,'history','Sample Grocers','2026-02-12T17:18:00.000000Z',NULL);
INSERT INTO "posting" VALUES(41,'history','Specimen Cinema','2026-02-13T11:14:00.000000Z',NULL);
INSERT INTO "posting" VALUES(42,'history','Corner Bakery Example','2026-02-13T16:09:00.000000Z',NULL);
INSERT INTO "posting" VALUES(43,'history','Refund, Sample Airlines','2026-02-14T08:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(44,'history','Imaginary Noodles','2026-02-14T12:17:00.000000Z',NULL);
INSERT INTO "posting" VALUES(45,'history','Imaginary Noodles','2026-02-14T19:17:00.000000Z',NULL);
INSERT INTO "posting" VALUES(46,'history','Sample Grocers','2026-02-15T09:25:00.000000Z',NULL);
INSERT INTO "posting" VALUES(47,'history','Test Pharmacy','2026-02-15T15:10:00.000000Z',NULL);
INSERT INTO "posting" VALUES(48,'history','Salary, Example Works','2026-02-16T06:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(49,'history','Monthly saving','2026-02-16T09:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(50,'history','Sample Grocers','2026-02-16T12:07:00.000000Z',NULL);
INSERT INTO "posting" VALUES(51,'history','Paper Cup Coffee','2026-02-16T16:49:00.000000Z',NULL);
INSERT INTO "posting" VALUES(52,'history','Interest','2026-02-17T00:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(53,'history','City Bus Ticket','2026-02-17T11:56:00.000000Z',NULL);
INSERT INTO "posting" VALUES(54,'history','Specimen Cinema','2026-02-17T15:29:00.000000Z',NULL);
INSERT INTO "posting" VALUES(55,'history','Corner Bakery Example','2026-02-18T08:46:00.000000Z',NULL);
INSERT INTO "posting" VALUES(56,'history','Monthly saving','2026-02-18T09:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(57,'history','City Bus Ticket','2026-02-18T19:43:00.000000Z',NULL);
INSERT INTO "posting" VALUES(58,'history','Test Pharmacy','2026-02-19T12:51:00.000000Z',NULL);
INSERT INTO "posting" VALUES(59,'history','Corner Bakery Example','2026-02-19T15:17:00.000000Z',NULL);
INSERT INTO "posting" VALUES(60,'history','Salary, Example Works','2026-02-20T06:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(61,'history','Salary, Model Company','2026-02-20T06:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(62,'history','Imaginary Noodles','2026-02-20T08:42:00.000000Z',NULL);
INSERT INTO "posting" VALUES(63,'history','Specimen Cinema','2026-02-20T17:44:00.000000Z',NULL);
INSERT INTO "posting" VALUES(64,'history','Corner Bakery Example','2026-02-21T12:26:00.000000Z',NULL);
INSERT INTO "posting" VALUES(65,'history','Specimen Cinema','2026-02-21T16:59:00.000000Z',NULL);
INSERT INTO "posting" VALUES(66,'history','Sample Grocers','2026-02-22T11:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(67,'history','City Bus Ticket','2026-02-22T12:31:00.000000Z',NULL);
INSERT INTO "posting" VALUES(68,'history','Test Pharmacy','2026-02-22T17:38:00.000000Z',NULL);
INSERT INTO "posting" VALUES(69,'history','Employer contribution','2026-02-23T10:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(70,'history','Test Pharmacy','2026-02-23T10:19:00.000000Z',NULL);
INSERT INTO "posting" VALUES(71,'history','Sample Grocers','2026-02-23T16:05:00.000000Z',NULL);
INSERT INTO "posting" VALUES(72,'history','Sample Grocers','2026-02-23T17:40:00.000000Z',NULL);
INSERT INTO "posting" VALUES(73,'history','Placeholder Books','2026-02-24T11:43:00.000000Z',NULL);
INSERT INTO "posting" VALUES(74,'history','Imaginary Noodles','2026-02-24T17:29:00.000000Z',NULL);
INSERT INTO "posting" VALUES(75,'history','Fictional Internet','2026-02-24T18:20:00.000000Z',NULL);
INSERT INTO "posting" VALUES(76,'history','Placeholder Books','2026-02-25T10:06:00.000000Z',NULL);
INSERT INTO "posting" VALUES(77,'history','Lessons','2026-02-25T16:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(78,'history','Corner Bakery Example','2026-02-25T19:03:00.000000Z',NULL);
INSERT INTO "posting" VALUES(79,'history','Monthly saving','2026-02-26T09:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(80,'history','Corner Bakery Example','2026-02-26T12:19:00.000000Z',NULL);
INSERT INTO "posting" VALUES(81,'history','Sample Grocers','2026-02-26T15:37:00.000000Z',NULL);
INSERT INTO "posting" VALUES(82,'history','Rent','2026-02-27T09:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(83,'history','Paper Cup Coffee','2026-02-27T09:02:00.000000Z',NULL);
INSERT INTO "posting" VALUES(84,'history','Sample Grocers','2026-02-27T17:26:00.000000Z',NULL);
INSERT INTO "posting" VALUES(85,'history','Rent','2026-02-28T09:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(86,'history','Corner Bakery Example','2026-02-28T09:40:00.000000Z',NULL);
INSERT INTO "posting" VALUES(87,'history','Trattoria Example','2026-02-28T12:10:00.000000Z',NULL);
INSERT INTO "posting" VALUES(88,'history','Paper Cup Coffee','2026-02-28T19:37:00.000000Z',NULL);
INSERT INTO "posting" VALUES(89,'history','Imaginary Noodles','2026-03-01T08:15:00.000000Z',NULL);
INSERT INTO "posting" VALUES(90,'history','Sample Grocers','2026-03-01T13:05:00.000000Z',NULL);
INSERT INTO "posting" VALUES(91,'history','Imaginary Noodles','2026-03-01T15:52:00.000000Z',NULL);
INSERT INTO "posting" VALUES(92,'history','Salary, Demo Industries','2026-03-02T06:00:00.000000Z',NULL);
INSERT INTO "posting" VALUES(93,'history','Corner Bakery Example','2026-03-02T10:37:00.000000Z',NULL);
INSERT INTO "posting" VALUES(94,'history','Placeholder Books','2026-03-02T15:05:00.000000Z',NULL);
INSERT INTO "posting" VALUES(95,'history','Interest','2026-03-03T00:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(96,'history','Interest','2026-03-03T00:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(97,'history','Interest','2026-03-03T00:30:00.000000Z',NULL);
INSERT INTO "posting" VALUES(98,'history','Specimen Cinema','2026-03-03T09:25:00.000000Z',NULL);
INSERT INTO "posting" VALUES(99,'history','Paper Cup Coffee','2026-03-03T15:52:00.000000Z',NULL);
INSERT INTO "posting" VALUES(100,'transfer','it''s -- a memo; é','2026-03-04T10:00:00.000000Z','tr_eca2d4fd229748fe');
INSERT INTO "posting" VALUES(101,'transfer','Transfer','2026-03-04T10:00:00.000000Z','tr_08ea41f165ec3520');
INSERT INTO "posting" VALUES(102,'transfer','Transfer','2026-03-01T10:00:00.000000Z','tr_47ede2e78351f0a3');
CREATE TABLE transfer (
	transfer_id TEXT NOT NULL, 
	customer_id TEXT NOT NULL, 
	from_account_id TEXT NOT NULL, 
	to_account_id TEXT NOT NULL, 
	amount_minor INTEGER NOT NULL, 
	currency TEXT NOT NULL, 
	scheduled_date DATE, 
	memo TEXT, 
	status TEXT NOT NULL, 
	reason TEXT, 
	approval TEXT NOT NULL, 
	wrong_codes INTEGER NOT NULL, 
	created_at TEXT NOT NULL, 
	expires_at TEXT NOT NULL, 
	posted_at TEXT, 
	PRIMARY KEY (transfer_id), 
	FOREIGN KEY(from_account_id, currency) REFERENCES account (account_id, currency), 
	FOREIGN KEY(to_account_id, currency) REFERENCES account (account_id, currency), 
	CONSTRAINT amount_is_positive CHECK (typeof(amount_minor) = 'integer' AND amount_minor > 0), 
	CONSTRAINT accounts_differ CHECK (from_account_id <> to_account_id), 
	CONSTRAINT status_is_known CHECK (status IN ('pending', 'scheduled', 'posted', 'voided', 'expired', 'failed')), 
	CONSTRAINT approval_is_known CHECK (approval IN ('none', 'required', 'requested', 'granted', 'refused')), 
	CONSTRAINT posted_has_its_time CHECK ((status = 'posted') = (posted_at IS NOT NULL)), 
	CONSTRAINT wrong_codes_are_counted CHECK (wrong_codes >= 0), 
	FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
);
INSERT INTO "transfer" VALUES('tr_eca2d4fd229748fe','CUST001','acc_everyday_001','acc_savings_001',2550,'USD',NULL,'it''s -- a memo; é','posted',NULL,'none',0,'2026-03-04T10:00:00.000000Z','2026-03-04T10:10:00.000000Z','2026-03-04T10:00:00.000000Z');
INSERT INTO "transfer" VALUES('tr_08ea41f165ec3520','CUST001','acc_savings_001','acc_payee_001',300000,'USD',NULL,NULL,'posted',NULL,'none',0,'2026-03-04T10:00:00.000000Z','2026-03-04T10:10:00.000000Z','2026-03-04T10:00:00.000000Z');
INSERT INTO "transfer" VALUES('tr_47ede2e78351f0a3','CUST001','acc_savings_001','acc_everyday_001',700,'USD',NULL,NULL,'posted',NULL,'none',0,'2026-03-04T10:00:00.000000Z','2026-03-04T10:10:00.000000Z','2026-03-01T10:00:00.000000Z');
INSERT INTO "transfer" VALUES('tr_3c12dbe47f259579','CUST001','acc_everyday_001','acc_savings_001',1200,'USD','2026-03-09',NULL,'scheduled',NULL,'none',0,'2026-03-04T10:00:00.000000Z','2026-03-04T10:10:00.000000Z',NULL);
INSERT INTO "transfer" VALUES('tr_7cc9f233d42d7afd','CUST001','acc_everyday_001','acc_savings_001',4000,'USD',NULL,NULL,'pending',NULL,'none',0,'2026-03-04T10:00:00.000000Z','2026-03-04T10:10:00.000000Z',NULL);
INSERT INTO "transfer" VALUES('tr_ea35956f3689b4ae','CUST001','acc_everyday_001','acc_savings_001',4100,'USD',NULL,NULL,'pending',NULL,'none',1,'2026-03-04T11:00:00.000000Z','2026-03-04T11:10:00.000000Z',NULL);
INSERT INTO "transfer" VALUES('tr_54374628faf1bf43','CUST001','acc_everyday_001','acc_savings_001',900,'USD',NULL,'no','voided','cancelled by the customer','none',0,'2026-03-04T10:00:00.000000Z','2026-03-04T10:10:00.000000Z',NULL);
INSERT INTO "transfer" VALUES('tr_3728e30e0898e4b4','CUST001','acc_savings_001','acc_everyday_001',1200000,'USD',NULL,NULL,'pending',NULL,'requested',0,'2026-03-04T10:00:00.000000Z','2026-03-05T10:00:00.000000Z',NULL);
CREATE INDEX ix_audit_event_customer_id ON audit_event (customer_id);
CREATE INDEX ix_account_customer_id ON account (customer_id);
CREATE UNIQUE INDEX one_open_handoff_per_reason ON handoff (customer_id, reason) WHERE status = 'open';
CREATE INDEX transfer_reserves ON transfer (from_account_id, status, expires_at);
CREATE INDEX transfer_falls_due ON transfer (status, scheduled_date);
CREATE INDEX ix_transfer_customer_id ON transfer (customer_id);
CREATE INDEX entry_of_account ON entry (account_id, amount_minor);
CREATE TRIGGER posting_is_append_only_UPDATE BEFORE UPDATE ON posting
BEGIN SELECT RAISE(ABORT, 'posting is append-only'); END;
CREATE TRIGGER posting_is_append_only_DELETE BEFORE DELETE ON posting
BEGIN SELECT RAISE(ABORT, 'posting is append-only'); END;
CREATE TRIGGER entry_is_append_only_UPDATE BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END;
CREATE TRIGGER entry_is_append_only_DELETE BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END;
CREATE TRIGGER audit_event_is_append_only_UPDATE BEFORE UPDATE ON audit_event
BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END;
CREATE TRIGGER audit_event_is_append_only_DELETE BEFORE DELETE ON audit_event
BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END;
CREATE TRIGGER entry_balances BEFORE INSERT ON entry
WHEN NEW.side = 'credit' AND NOT EXISTS (
    SELECT 1 FROM entry WHERE posting_id = NEW.posting_id AND side = 'debit'
    AND amount_minor = -NEW.amount_minor AND currency = NEW.currency)
BEGIN SELECT RAISE(ABORT, 'a credit needs its debit first'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('posting',102);
INSERT INTO "sqlite_sequence" VALUES('audit_event',20);
COMMIT;
