package main

import "github.com/luanette/luanette/internal/base/fault"

func (c *certCommand) giveAway(...string) error {
	if c.Owner == "" {
		return nil
	}
	return fault.New(fault.Config, "--owner is for Linux and macOS").WithHint("set the permissions of the key with icacls")
}
