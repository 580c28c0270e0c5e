-- +goose Up
CREATE TABLE job_files ( -- what jobs changed in files
	job     TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
	step    BIGINT NOT NULL, -- of the journal
	place   BIGINT NOT NULL, -- 1, 2, 3 ... in the order of the changes
	path    TEXT NOT NULL,
	before  TEXT NOT NULL, -- hash of the content before the change; empty if there was no file
	kept    TEXT NOT NULL, -- the same if the content is stored: that before the first change of the file
	mode    BIGINT NOT NULL,
	after   TEXT NOT NULL, -- hash of the content that the change left; empty if it removed the file
	problem TEXT NOT NULL, -- why the change cannot be undone; empty if it can
	PRIMARY KEY (job, step)
);
CREATE INDEX job_files_by_content ON job_files (kept) WHERE kept <> '';

-- +goose Down
DROP TABLE job_files;
