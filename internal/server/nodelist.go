package server

import (
	"context"
	"errors"

	"github.com/luanette/luanette/internal/cluster/node"
)

// Nodes lists the servers that share the configuration's database.
func Nodes(ctx context.Context, config *Loaded, env Environment) (list []node.Info, err error) {
	store, err := openDatabase(ctx, config, config.finder(env))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return node.List(ctx, store)
}
