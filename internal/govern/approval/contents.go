package approval

import "github.com/luanette/luanette/internal/store/cas"

// Contents lists the columns with hashes of contents: of the scripts that ask.
func Contents() []cas.Column {
	return []cas.Column{
		{Table: "approvals", Name: "hash", Where: "state = 'pending'"},
		{Table: "approval_rules", Name: "subject", Why: "it is compared with the hash of a script"},
	}
}
