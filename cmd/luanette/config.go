package main

// configCommand is `luanette config`.
type configCommand struct {
	Show configShowCommand `cmd:"" help:"Print the effective configuration, secrets hidden."`
}

// configShowCommand is `luanette config show`.
type configShowCommand struct {
	settingFlags
	Listen *string `placeholder:"ADDR" help:"As for serve."`
}

// Run prints every key with its value and where it came from.
func (c *configShowCommand) Run(proc *process) error {
	loaded, err := c.load(proc, map[string]*string{"listen": c.Listen})
	if err != nil {
		return err
	}
	return loaded.Show(proc.Stdout)
}
