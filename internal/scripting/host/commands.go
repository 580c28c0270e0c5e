package host

import "context"

// Commands runs programs for scripts. The implementation decides which programs, where
// and with what environment.
type Commands interface {
	// Run runs a program to its end. A program that ran and failed is a result with its
	// status, not an error.
	Run(ctx context.Context, name string, args []string) (CommandResult, error)
}

// CommandResult is the result of a program.
type CommandResult struct {
	Status int // its exit status
	Stdout string
	Stderr string
}
