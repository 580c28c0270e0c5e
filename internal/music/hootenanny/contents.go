package hootenanny

import "github.com/luanette/luanette/internal/store/cas"

// StoredContents lists the columns with hashes of contents. Whoever plays or lists one must
// have it, so none of them keeps it.
func StoredContents() []cas.Column {
	const why = "whoever uses it must have the content"
	return []cas.Column{
		{Table: "hoot_variations", Name: "hash", Why: why},
		{Table: "hoot_metadata", Name: "hash", Why: why},
		{Table: "hoot_regions", Name: "content_id", Why: why},
	}
}
