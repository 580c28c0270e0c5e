-- +goose Up
CREATE TABLE approval_delegations (
    person   TEXT NOT NULL,    -- who has the role
    org      TEXT NOT NULL,
    role     TEXT NOT NULL,
    delegate TEXT NOT NULL,    -- the person who decides in their place
    created  BIGINT NOT NULL,
    until    BIGINT NOT NULL,
    PRIMARY KEY (person, org, role)
);
CREATE INDEX approval_delegations_by_delegate ON approval_delegations (delegate, until);

-- +goose Down
DROP TABLE approval_delegations;
