package share

import "github.com/luanette/luanette/internal/store/cas"

// Contents lists the columns with hashes of contents: of artifacts that are shared.
func Contents() []cas.Column {
	return []cas.Column{{Table: "shares", Name: "thing", Why: "the artifact has an owner as long as it is shared"}}
}
