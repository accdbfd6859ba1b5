CREATE TABLE audit_archive (
    archive_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    up_to_event_id INTEGER NOT NULL,
    events INTEGER NOT NULL,
    sha256 TEXT NOT NULL
)

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
)

CREATE TABLE customer (
    customer_id TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (customer_id)
)

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
    debits_posted_minor INTEGER NOT NULL,
    credits_posted_minor INTEGER NOT NULL,
    debits_pending_minor INTEGER NOT NULL,
    last_posted_at TEXT,
    PRIMARY KEY (account_id),
    UNIQUE (account_id, currency),
    CONSTRAINT account_type_is_known CHECK (account_type IN ('checking', 'savings', 'retirement', 'deposit', 'external', 'equity')),
    CONSTRAINT currency_is_a_code CHECK (length(currency) = 3 AND currency = upper(currency)),
    CONSTRAINT equity_is_the_banks_own CHECK ((account_type = 'equity') = (customer_id IS NULL)),
    CONSTRAINT flags_are_flags CHECK (can_transfer_from IN (0, 1) AND can_transfer_to IN (0, 1) AND is_locked IN (0, 1)),
    CONSTRAINT totals_are_not_negative CHECK (debits_posted_minor >= 0 AND credits_posted_minor >= 0 AND debits_pending_minor >= 0),
    CONSTRAINT nobody_owes_the_bank CHECK (account_type = 'equity' OR credits_posted_minor >= debits_posted_minor),
    FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
)

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
)

CREATE TABLE wrong_attempt (
    attempt_id INTEGER NOT NULL,
    customer_id TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (attempt_id),
    FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
)

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
    declines INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (transfer_id),
    FOREIGN KEY(from_account_id, currency) REFERENCES account (account_id, currency),
    FOREIGN KEY(to_account_id, currency) REFERENCES account (account_id, currency),
    CONSTRAINT amount_is_positive CHECK (amount_minor > 0),
    CONSTRAINT amount_is_whole CHECK (typeof(amount_minor) = 'integer'),
    CONSTRAINT accounts_differ CHECK (from_account_id <> to_account_id),
    CONSTRAINT status_is_known CHECK (status IN ('pending', 'scheduled', 'posted', 'voided', 'expired', 'failed')),
    CONSTRAINT approval_is_known CHECK (approval IN ('none', 'required', 'requested', 'granted', 'refused')),
    CONSTRAINT posted_has_its_time CHECK ((status = 'posted') = (posted_at IS NOT NULL)),
    CONSTRAINT wrong_codes_are_counted CHECK (wrong_codes >= 0),
    CONSTRAINT declines_are_counted CHECK (declines >= 0),
    FOREIGN KEY(customer_id) REFERENCES customer (customer_id)
)

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
)

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
)

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
)

CREATE TABLE entry (
    entry_id INTEGER NOT NULL,
    posting_id INTEGER NOT NULL,
    side TEXT NOT NULL,
    account_id TEXT NOT NULL,
    amount_minor INTEGER NOT NULL,
    currency TEXT NOT NULL,
    posted_at TEXT NOT NULL,
    debits_after_minor INTEGER NOT NULL,
    credits_after_minor INTEGER NOT NULL,
    PRIMARY KEY (entry_id),
    FOREIGN KEY(account_id, currency) REFERENCES account (account_id, currency),
    UNIQUE (posting_id, side),
    UNIQUE (posting_id, account_id),
    CONSTRAINT side_is_known CHECK (side IN ('debit', 'credit')),
    CONSTRAINT sign_fits_side CHECK (amount_minor <> 0 AND (side = 'debit') = (amount_minor < 0)),
    CONSTRAINT amount_is_whole CHECK (typeof(amount_minor) = 'integer'),
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

CREATE TRIGGER posting_is_append_only_UPDATE BEFORE UPDATE ON posting
BEGIN SELECT RAISE(ABORT, 'posting is append-only'); END

CREATE TRIGGER posting_is_append_only_DELETE BEFORE DELETE ON posting
BEGIN SELECT RAISE(ABORT, 'posting is append-only'); END

CREATE TRIGGER entry_is_append_only_UPDATE BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END

CREATE TRIGGER entry_is_append_only_DELETE BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END

CREATE TRIGGER audit_event_is_append_only_UPDATE BEFORE UPDATE ON audit_event
BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END

CREATE TRIGGER audit_event_is_append_only_DELETE BEFORE DELETE ON audit_event WHEN OLD.event_id > (SELECT coalesce(max(up_to_event_id), 0) FROM audit_archive)
BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END

CREATE TRIGGER audit_archive_is_append_only_UPDATE BEFORE UPDATE ON audit_archive
BEGIN SELECT RAISE(ABORT, 'audit_archive is append-only'); END

CREATE TRIGGER audit_archive_is_append_only_DELETE BEFORE DELETE ON audit_archive
BEGIN SELECT RAISE(ABORT, 'audit_archive is append-only'); END

CREATE TRIGGER entry_balances BEFORE INSERT ON entry
WHEN NEW.side = 'credit' AND NOT EXISTS (
    SELECT 1 FROM entry WHERE posting_id = NEW.posting_id AND side = 'debit'
    AND amount_minor = -NEW.amount_minor AND currency = NEW.currency)
BEGIN SELECT RAISE(ABORT, 'a credit needs its debit first'); END
