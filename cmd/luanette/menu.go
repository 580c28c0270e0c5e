package main

// menuFlags are the flags of the commands that serve MCP clients. A pointer that stays
// nil was not given.
type menuFlags struct {
	Menu  *string `placeholder:"NAME" help:"Which of our own tools clients see: code, standard or full (default code)."`
	Music bool    `help:"Offer the music tools."`
}

// settings returns the flags by the keys of their settings.
func (f *menuFlags) settings() map[string]*string {
	given := map[string]*string{"mcp.menu": f.Menu}
	if f.Music {
		yes := "true"
		given["music.enabled"] = &yes
	}
	return given
}
