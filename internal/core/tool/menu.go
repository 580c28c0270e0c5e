package tool

import "context"

type menuKey struct{}

// WithMenu returns a context for requests of a client that asked for a list of tools by
// its name. Which lists there are is up to the source.
func WithMenu(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, menuKey{}, name)
}

// MenuOf returns the name of the list that the client asked for, "" if it did not.
func MenuOf(ctx context.Context) string {
	name, _ := ctx.Value(menuKey{}).(string)
	return name
}
