package script

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/scripting/host"
)

// filesFor returns the folders that a run may use. Of the folder of contents it may read
// those that its principal may: a path is no more than a hash.
func (r *Runner) filesFor(ctx context.Context) host.FilesOptions {
	options, contents := r.options.Files, r.options.Contents
	if contents != nil {
		ctx = context.WithoutCancel(ctx) // handlers of events run after it
		options.Allowed = func(inside string) bool {
			_, err := contents.Find(ctx, strings.ReplaceAll(filepath.ToSlash(inside), "/", ""))
			return err == nil
		}
	}
	return options
}
