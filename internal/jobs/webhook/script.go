package webhook

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// Script is a script to start.
type Script struct {
	Name, Hash, Source, Language string
}

// Scripts finds the scripts of hooks.
type Scripts struct {
	Published interface {
		Script(ctx context.Context, name string) (script.Request, bool)
	}
	Stored interface {
		Resolve(ctx context.Context, text string) (cas.Ref, error)
		Read(ctx context.Context, ref cas.Ref, limit int64) ([]byte, error)
	}
}

// Find returns a published script by its name, a stored one by its hash, or a file. A
// file is read at every delivery.
func (s Scripts) Find(ctx context.Context, name string) (Script, error) {
	if language := script.LanguageOf(name); language != "" {
		source, err := readFile(name)
		return Script{Name: filepath.Base(name), Source: source, Language: language}, err
	}
	if found, ok := s.Published.Script(ctx, name); ok {
		return Script{Name: found.Name, Hash: found.Hash.String(), Source: found.Source, Language: found.Language}, nil
	}
	ref, err := s.Stored.Resolve(ctx, name)
	if err != nil {
		return Script{}, fault.New(fault.NotFound, "no published or stored script %q", name).WithHint("luanette script publish publishes one; script can also be a file that ends in .lua, .js or .ts")
	}
	source, err := s.Stored.Read(ctx, ref, script.MaxSource)
	return Script{Hash: ref.String(), Source: string(source)}, err
}

func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	source, err := io.ReadAll(io.LimitReader(file, script.MaxSource+1))
	if err == nil && len(source) > script.MaxSource {
		err = fault.New(fault.Limit, "the script %s is too large", path)
	}
	return string(source), err
}
