package client

import (
	"context"
	"errors"

	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/config"
)

// Nodes lists the servers that share the configuration's database.
func Nodes(ctx context.Context, loaded *config.Loaded, env config.Environment) (list []node.Info, err error) {
	store, err := loaded.OpenDatabase(ctx, loaded.SecretFinder(env))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return node.List(ctx, store)
}
