CREATE TABLE audit_archive (
    archive_id BIGSERIAL NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    up_to_event_id BIGINT NOT NULL,
    events INTEGER NOT NULL,
    sha256 TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (archive_id)
)

CREATE TABLE audit_event (
    event_id BIGSERIAL NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    customer_id TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C",
    chain_id TEXT COLLATE "C",
    chain_level INTEGER,
    chain_previous_tool TEXT COLLATE "C",
    PRIMARY KEY (event_id)
)

CREATE TABLE customer (
    customer_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (customer_id)
)

CREATE TABLE account (
    account_id TEXT COLLATE "C" NOT NULL,
    customer_id TEXT COLLATE "C",
    account_name TEXT COLLATE "C" NOT NULL,
    account_type TEXT COLLATE "C" NOT NULL,
    can_transfer_from BOOLEAN NOT NULL,
    can_transfer_to BOOLEAN NOT NULL,
    is_locked BOOLEAN NOT NULL,
    account_holder TEXT COLLATE "C",
    currency TEXT COLLATE "C" NOT NULL,
    debits_posted_minor BIGINT NOT NULL,
    credits_posted_minor BIGINT NOT NULL,
    debits_pending_minor BIGINT NOT NULL,
    last_posted_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (account_id),
    UNIQUE (account_id, currency),
    CONSTRAINT account_type_is_known CHECK (account_type IN ('checking', 'savings', 'retirement', 'deposit', 'external', 'equity')),
    CONSTRAINT currency_is_a_code CHECK (length(currency) = 3 AND currency = upper(currency)),
    CONSTRAINT equity_is_the_banks_own CHECK ((account_type = 'equity') = (customer_id IS NULL)),
    CONSTRAINT totals_are_not_negative CHECK (debits_posted_minor >= 0 AND credits_posted_minor >= 0 AND debits_pending_minor >= 0),
    CONSTRAINT nobody_owes_the_bank CHECK (account_type = 'equity' OR credits_posted_minor >= debits_posted_minor),
    FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
)

CREATE TABLE handoff (
    handoff_id TEXT COLLATE "C" NOT NULL,
    customer_id TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    choice TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    claimed_by TEXT COLLATE "C",
    claimed_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (handoff_id),
    CONSTRAINT choice_is_known CHECK (choice IN ('realtime', 'callback')),
    CONSTRAINT status_is_known CHECK (status IN ('open', 'claimed')),
    CONSTRAINT claimed_has_its_agent CHECK ((status = 'claimed') = (claimed_by IS NOT NULL) AND (status = 'claimed') = (claimed_at IS NOT NULL)),
    FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
)

CREATE TABLE wrong_attempt (
    attempt_id BIGSERIAL NOT NULL,
    customer_id TEXT COLLATE "C" NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (attempt_id),
    FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
)

CREATE TABLE transfer (
    transfer_id TEXT COLLATE "C" NOT NULL,
    customer_id TEXT COLLATE "C" NOT NULL,
    from_account_id TEXT COLLATE "C" NOT NULL,
    to_account_id TEXT COLLATE "C" NOT NULL,
    amount_minor BIGINT NOT NULL,
    currency TEXT COLLATE "C" NOT NULL,
    scheduled_date DATE,
    memo TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C",
    approval TEXT COLLATE "C" NOT NULL,
    wrong_codes INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    posted_at TIMESTAMP WITH TIME ZONE,
    declines INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (transfer_id),
    FOREIGN KEY(from_account_id, currency) REFERENCES account (account_id, currency),
    FOREIGN KEY(to_account_id, currency) REFERENCES account (account_id, currency),
    CONSTRAINT amount_is_positive CHECK (amount_minor > 0),
    CONSTRAINT accounts_differ CHECK (from_account_id <> to_account_id),
    CONSTRAINT status_is_known CHECK (status IN ('pending', 'scheduled', 'posted', 'voided', 'expired', 'failed')),
    CONSTRAINT approval_is_known CHECK (approval IN ('none', 'required', 'requested', 'granted', 'refused')),
    CONSTRAINT posted_has_its_time CHECK ((status = 'posted') = (posted_at IS NOT NULL)),
    CONSTRAINT wrong_codes_are_counted CHECK (wrong_codes >= 0),
    CONSTRAINT declines_are_counted CHECK (declines >= 0),
    FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
)

CREATE TABLE approval (
    approval_id TEXT COLLATE "C" NOT NULL,
    transfer_id TEXT COLLATE "C" NOT NULL,
    customer_id TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    decided_by TEXT COLLATE "C",
    decided_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (approval_id),
    CONSTRAINT status_is_known CHECK (status IN ('requested', 'granted', 'refused')),
    CONSTRAINT decided_has_its_manager CHECK ((status = 'requested') = (decided_by IS NULL) AND (status = 'requested') = (decided_at IS NULL)),
    UNIQUE (transfer_id),
    FOREIGN KEY(transfer_id) REFERENCES transfer (transfer_id),
    FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
)

CREATE TABLE compliance_report (
    report_id TEXT COLLATE "C" NOT NULL,
    transfer_id TEXT COLLATE "C" NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    customer_id TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (report_id),
    UNIQUE (transfer_id, rule),
    FOREIGN KEY(transfer_id) REFERENCES transfer (transfer_id),
    FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
)

CREATE TABLE posting (
    posting_id BIGSERIAL NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    posted_at TIMESTAMP WITH TIME ZONE NOT NULL,
    transfer_id TEXT COLLATE "C",
    PRIMARY KEY (posting_id),
    CONSTRAINT kind_is_known CHECK (kind IN ('opening', 'history', 'transfer')),
    CONSTRAINT transfers_are_named CHECK ((kind = 'transfer') = (transfer_id IS NOT NULL)),
    UNIQUE (transfer_id),
    FOREIGN KEY(transfer_id) REFERENCES transfer (transfer_id)
)

CREATE TABLE entry (
    entry_id BIGSERIAL NOT NULL,
    posting_id BIGINT NOT NULL,
    side TEXT COLLATE "C" NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    amount_minor BIGINT NOT NULL,
    currency TEXT COLLATE "C" NOT NULL,
    posted_at TIMESTAMP WITH TIME ZONE NOT NULL,
    debits_after_minor BIGINT NOT NULL,
    credits_after_minor BIGINT NOT NULL,
    PRIMARY KEY (entry_id),
    FOREIGN KEY(account_id, currency) REFERENCES account (account_id, currency),
    UNIQUE (posting_id, side),
    UNIQUE (posting_id, account_id),
    CONSTRAINT side_is_known CHECK (side IN ('debit', 'credit')),
    CONSTRAINT sign_fits_side CHECK (amount_minor <> 0 AND (side = 'debit') = (amount_minor < 0)),
    CONSTRAINT totals_are_not_negative CHECK (debits_after_minor >= 0 AND credits_after_minor >= 0),
    FOREIGN KEY(posting_id) REFERENCES posting (posting_id)
)

CREATE INDEX ix_audit_event_customer_id ON audit_event (customer_id)

CREATE INDEX ix_account_customer_id ON account (customer_id)

CREATE INDEX wrong_attempt_of_customer ON wrong_attempt (customer_id, at)

CREATE INDEX entry_of_account ON entry (account_id, posted_at, posting_id)

CREATE INDEX transfer_reserves ON transfer (from_account_id, expires_at) WHERE status = 'pending'

CREATE INDEX transfer_of_customer ON transfer (customer_id, expires_at) WHERE status = 'pending'

CREATE INDEX transfer_expires ON transfer (expires_at) WHERE status = 'pending'

CREATE INDEX transfer_falls_due ON transfer (scheduled_date) WHERE status = 'scheduled'

CREATE UNIQUE INDEX one_open_handoff_per_reason ON handoff (customer_id, reason) WHERE status = 'open'

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' is append-only',
        ERRCODE = 'integrity_constraint_violation';
END $$

CREATE FUNCTION is_archived(event_id bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT event_id <= coalesce(max(up_to_event_id), 0) FROM audit_archive
$$

CREATE FUNCTION refuse_credit_alone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM entry WHERE posting_id = NEW.posting_id AND side = 'debit'
        AND amount_minor = -NEW.amount_minor AND currency = NEW.currency)
    THEN
        RAISE EXCEPTION USING MESSAGE = 'a credit needs its debit first',
            ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$

CREATE TRIGGER posting_is_append_only_UPDATE BEFORE UPDATE ON posting
FOR EACH ROW  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER posting_is_append_only_DELETE BEFORE DELETE ON posting
FOR EACH ROW  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER posting_is_append_only_TRUNCATE BEFORE TRUNCATE ON posting
FOR EACH STATEMENT  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER entry_is_append_only_UPDATE BEFORE UPDATE ON entry
FOR EACH ROW  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER entry_is_append_only_DELETE BEFORE DELETE ON entry
FOR EACH ROW  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER entry_is_append_only_TRUNCATE BEFORE TRUNCATE ON entry
FOR EACH STATEMENT  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER audit_event_is_append_only_UPDATE BEFORE UPDATE ON audit_event
FOR EACH ROW  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER audit_event_is_append_only_DELETE BEFORE DELETE ON audit_event
FOR EACH ROW WHEN (NOT is_archived(OLD.event_id)) EXECUTE FUNCTION refuse_change()

CREATE TRIGGER audit_event_is_append_only_TRUNCATE BEFORE TRUNCATE ON audit_event
FOR EACH STATEMENT  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER audit_archive_is_append_only_UPDATE BEFORE UPDATE ON audit_archive
FOR EACH ROW  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER audit_archive_is_append_only_DELETE BEFORE DELETE ON audit_archive
FOR EACH ROW  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER audit_archive_is_append_only_TRUNCATE BEFORE TRUNCATE ON audit_archive
FOR EACH STATEMENT  EXECUTE FUNCTION refuse_change()

CREATE TRIGGER entry_balances BEFORE INSERT ON entry
FOR EACH ROW WHEN (NEW.side = 'credit') EXECUTE FUNCTION refuse_credit_alone()
