package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/luanette/luanette/bench/calls"
)

// load is what a client does repeatedly.
type load struct {
	name string
	// prepare prepares client i of a node, and returns what it does each time.
	prepare prepare
}

func loads(script string) []load {
	jobs := jobsOf(script)
	return []load{
		{"a relayed call", relayed},
		{"a job with three calls", jobs},
		{"a chat turn", chat},
		{"mixed: 8 calls, 1 job, 1 turn of ten", mixed(relayed, relayed, relayed, relayed, jobs, relayed, relayed, relayed, relayed, chat)},
	}
}

// prepare is the type of load.prepare.
type prepare func(ctx context.Context, url string, i int) (func() error, error)

// mixed alternates between several kinds; clients begin with different ones.
func mixed(kinds ...prepare) prepare {
	return func(ctx context.Context, url string, i int) (func() error, error) {
		var all []func() error
		for n, kind := range kinds {
			do, err := kind(ctx, url, len(kinds)*i+n)
			if err != nil {
				return nil, err
			}
			all = append(all, do)
		}
		next := i
		return func() error {
			next++
			return all[next%len(all)]()
		}, nil
	}
}

// relayed is a call of the upstream's tool through the node.
func relayed(ctx context.Context, url string, _ int) (func() error, error) {
	c, err := calls.New(ctx, url+"/mcp/"+upstreamName, calls.Modern, "echo")
	if err != nil {
		return nil, err
	}
	return func() error { return c.Call(ctx) }, nil
}

var jobIn = regexp.MustCompile(`"job_id":\s*"([^"]+)"`)

// jobsOf submits a job and waits until its end is stored.
func jobsOf(script string) prepare {
	return func(ctx context.Context, url string, i int) (func() error, error) {
		c, err := calls.New(ctx, url+"/mcp", calls.Modern, "echo")
		if err != nil {
			return nil, err
		}
		return func() error {
			answer, err := c.Ask(ctx, "lua_execute", fmt.Sprintf(`{"script_hash":%q,"creator":"client %d"}`, script, i))
			id := jobIn.FindSubmatch(answer)
			if err != nil || id == nil {
				return fmt.Errorf("start a job: %w %s", err, answer)
			}
			answer, err = c.Ask(ctx, "job_poll", fmt.Sprintf(`{"job_ids":[%q],"timeout_ms":60000}`, id[1]))
			if err != nil || !bytes.Contains(answer, []byte("complete")) || !bytes.Contains(answer, []byte("done")) {
				return fmt.Errorf("job %s: %w %s", id[1], err, answer)
			}
			return nil
		}, nil
	}
}

// chat is a chat turn of a user with a history.
func chat(ctx context.Context, url string, i int) (func() error, error) {
	client, said := &http.Client{Transport: &http.Transport{}}, 0
	return func() error {
		said++
		message := fmt.Sprintf("message %d of person %d", said, i)
		body := fmt.Sprintf(`{"client_id":"load","user_id":"person %d","message":%q}`, i, message)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/chat", strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && !bytes.Contains(text, []byte(message)) {
			err = fmt.Errorf("chat answers %d: %s", answer.StatusCode, text)
		}
		return err
	}, nil
}
