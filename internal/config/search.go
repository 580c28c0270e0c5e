package config

// Search configures how tools are found.
type Search struct {
	Learn bool `toml:"learn" help:"learn from the tools that a caller calls after a search, for this caller and its organization; false also erases what was learned; docs/search.md"`
}

func defaultSearch() Search { return Search{Learn: true} }
