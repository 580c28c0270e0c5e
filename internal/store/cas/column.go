package cas

// Column is a column of a table that has hashes of contents. Each package with such a
// table lists its columns in a function Contents, so that no content is removed that is
// still needed.
type Column struct {
	Table, Name string
	// Where selects the rows that need their content: as long as they exist, it stays.
	// Rows of columns without it only name a content, which its owner may delete.
	Where string
	// Why says why rows only name their content, or some of them.
	Why string
}

// All is the Where of columns all of whose rows need their content.
const All = "1 = 1"
