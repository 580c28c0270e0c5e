package server

import (
	"context"
	"errors"

	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/config"
)

// Nodes lists the servers that share the configuration's database.
func Nodes(ctx context.Context, config *config.Loaded, env config.Environment) (list []node.Info, err error) {
	store, err := config.OpenDatabase(ctx, config.SecretFinder(env))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return node.List(ctx, store)
}
