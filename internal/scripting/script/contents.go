package script

import "github.com/luanette/luanette/internal/store/cas"

// Contents lists the columns with hashes of contents. Every version of a published script
// stays: it can become the tool again.
func Contents() []cas.Column {
	return []cas.Column{{Table: "publication_versions", Name: "hash", Where: cas.All}}
}
