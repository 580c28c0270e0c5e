package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
)

// MaxKept is the size of files that a FileKeeper keeps before they are changed, in bytes.
const MaxKept = 10 << 20

// FileChange is what an effect changes in one file.
type FileChange struct {
	Seq     int64
	Path    string      // whole
	Existed bool        // there was a file
	Before  []byte      // its content
	Mode    fs.FileMode // its permissions
	After   cas.Ref     // what the effect leaves there; zero if it removes the file
	Problem string      // why it cannot be undone; then Before and After are not known
}

// FileKeeper stores what a run changes in files, so that it can be undone. It is safe for
// concurrent use.
type FileKeeper interface {
	// Keep is called before an effect changes a file. An error refuses the effect.
	Keep(ctx context.Context, c FileChange) error
	// Failed is called after an effect failed, with what it left in the file.
	Failed(ctx context.Context, seq int64, after cas.Ref) error
	// Problem returns why a change cannot be undone, for whoever reads the run's output; ""
	// if it can, or if that was said before.
	Problem(seq int64) string
}

// KeepFiles has keeper store what is in files outside the run's temp folder before inner
// changes them. Effects that inner answers without carrying them out change nothing.
func KeepFiles(inner Handler, keeper FileKeeper) Handler {
	return around{inner: inner, handle: func(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
		if e.onFile == nil || e.TempOnly {
			return inner.Handle(ctx, e, live)
		}
		values, err := inner.Handle(ctx, e, func(ctx context.Context) ([]Value, error) {
			if inRehearsal(ctx) {
				return live(ctx)
			}
			return e.onFile.keep(ctx, e.Seq, keeper, live)
		})
		if problem := keeper.Problem(e.Seq); problem != "" {
			e.onFile.say(fmt.Sprintf("%s cannot be undone: %s", written(e.Name, e.Args), problem))
		}
		return values, err
	}}
}

// fileEffect is an effect that changes one file.
type fileEffect struct {
	env  *Env
	f    *Func
	args Args
	path string
}

// keep carries the effect out after keeper has stored what it changes.
func (x *fileEffect) keep(ctx context.Context, seq int64, keeper FileKeeper, live func(context.Context) ([]Value, error)) ([]Value, error) {
	c, err := x.change(ctx)
	if err != nil {
		return live(ctx) // which says what is wrong
	}
	c.Seq = seq
	if err := keeper.Keep(ctx, c); err != nil {
		return nil, err
	}
	values, err := live(ctx)
	if err == nil || c.Problem != "" {
		return values, err
	}
	left, unknown := x.env.services.Files.Hash(x.path)
	if unknown == nil {
		unknown = keeper.Failed(context.WithoutCancel(ctx), seq, left)
	}
	return values, errors.Join(err, unknown)
}

// change returns what the effect is about to change: it is rehearsed.
func (x *fileEffect) change(ctx context.Context) (FileChange, error) {
	c, err := x.env.services.Files.snapshot(x.path)
	if err != nil || c.Problem != "" {
		return c, err
	}
	services := x.env.services.rehearse() // an overlay that nothing else uses
	if _, err := x.f.Effect(ctx, services, x.args); err != nil {
		if fault.CodeOf(err) == fault.Limit {
			c.Problem, err = err.Error(), nil
		}
		return c, err
	}
	c.After, err = services.Files.Hash(x.path)
	return c, err
}

// say adds a line to the run's output. One that is full lacks it.
func (x *fileEffect) say(text string) {
	_ = x.env.services.Output.Print("log", "warn", text, x.env.services.Clock.Now())
}

// snapshot reads a file that is about to be changed.
func (f *Files) snapshot(path string) (c FileChange, err error) {
	root, inside, err := f.open(path, true)
	if err != nil {
		return c, err
	}
	defer root.Close()
	c.Path = filepath.Join(root.Name(), inside)
	info, err := root.Stat(inside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return c, err
	case !info.Mode().IsRegular():
		c.Problem = "it is not a regular file"
		return c, nil
	case info.Size() > MaxKept:
		c.Problem = fmt.Sprintf("the file is larger than %d MiB", MaxKept>>20)
		return c, nil
	}
	c.Existed, c.Mode = true, info.Mode().Perm()
	c.Before, err = root.ReadFile(inside)
	return c, err
}

// Hash returns the hash of a file's content; the zero Ref if there is no file.
func (f *Files) Hash(path string) (cas.Ref, error) {
	file, err := f.Open(path)
	if fault.CodeOf(err) == fault.NotFound {
		return cas.Ref{}, nil
	}
	if err != nil {
		return cas.Ref{}, err
	}
	defer file.Close()
	ref, err := cas.SumOf(file)
	if err != nil {
		return ref, fileFault("read", path, err)
	}
	return ref, nil
}

// ChangedFile is a file that a job has changed.
type ChangedFile struct {
	Before  cas.Ref // its content before the job; zero if there was no file
	After   cas.Ref // what the job left; zero if it removed the file
	Mode    fs.FileMode
	Problem string // why the file cannot be restored; "" if it can
	// Content opens the content before the job.
	Content func(ctx context.Context) (io.ReadCloser, error)
}

// Restore makes a file what it was before a job changed it, and returns what was done:
// "restored", "removed", or "unchanged" if it is so already. A file that somebody changed
// since is left as it is.
func (f *Files) Restore(ctx context.Context, path string, was ChangedFile) (done string, err error) {
	now, err := f.Hash(path)
	switch {
	case err != nil:
		return "", err
	case was.Problem != "":
		return "", fault.New(fault.Conflict, "restore %s: %s", path, was.Problem)
	case now == was.Before:
		return "unchanged", nil
	case now != was.After:
		return "", fault.New(fault.Conflict, "restore %s: somebody changed the file after the job, so it is left as it is", path)
	case was.Before.IsZero():
		return "removed", f.Remove(path)
	}
	content, err := was.Content(ctx)
	if err != nil {
		return "", err
	}
	defer content.Close()
	var old bytes.Buffer
	if _, err := io.Copy(&old, content); err != nil {
		return "", err
	}
	if err := f.Write(path, old.Bytes(), false); err != nil || now != (cas.Ref{}) || f.overlay != nil {
		return "restored", err
	}
	return "restored", f.chmod(path, was.Mode)
}

// chmod sets the permissions of a file that was made just now.
func (f *Files) chmod(path string, mode fs.FileMode) error {
	root, inside, err := f.open(path, true)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Chmod(inside, mode); err != nil {
		return fileFault("write", path, err)
	}
	return nil
}
