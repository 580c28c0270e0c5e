-- +goose Up
CREATE TABLE approval_mails ( -- who is told of a request by mail
    approval TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    person   TEXT NOT NULL,    -- empty: nobody has the role
    next     BIGINT NOT NULL,  -- when it is sent, or tried again; 0 is never
    tries    BIGINT NOT NULL,
    sent     BIGINT NOT NULL,  -- 0: not yet
    PRIMARY KEY (approval, person)
);
CREATE INDEX approval_mails_by_person ON approval_mails (person, sent);

-- +goose Down
DROP TABLE approval_mails;
