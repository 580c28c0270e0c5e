package host

import "context"

// Commands runs programs of the machine for scripts. Which programs, where and
// with what environment is decided by whoever made it.
type Commands interface {
	// Run runs a program to its end. A program that ran and failed is an outcome
	// with its status, not an error.
	Run(ctx context.Context, name string, args []string) (CommandResult, error)
}

// CommandResult is what a program left behind.
type CommandResult struct {
	Status int // its exit status
	Stdout string
	Stderr string
}
