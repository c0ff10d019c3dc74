package lxd

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// oneContainer is an LXD with room for one container, whose server of files hangs for the first
// ones.
type oneContainer struct {
	t         *testing.T
	hanging   int                 // so many containers take no files
	meanwhile func(*oneContainer) // happens before the first container is marked again

	made, deleted, revision int
	config                  map[string]string // nil: there is none
	status, used            string
	documents               int // in the container
}

func (l *oneContainer) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/files") && r.Method == http.MethodPost && l.deleted < l.hanging {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	l.serve(w, r)
	return w.Result(), nil
}

func (l *oneContainer) serve(w http.ResponseWriter, r *http.Request) {
	var body struct{ Config map[string]string }
	if r.Body != nil && !strings.HasSuffix(r.URL.Path, "/files") {
		_ = json.NewDecoder(r.Body).Decode(&body)
	}
	switch what := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/1.0/"); {
	case what == "GET operations":
		answer(map[string]any{})(w, r)
	case what == "POST instances":
		l.made++
		l.config, l.status, l.used, l.documents = body.Config, isStopped, "", 0
		answer(nil)(w, r)
	case l.config == nil:
		refuse(http.StatusNotFound, "Instance not found")(w, r)
	case what == "GET instances/ls-i1":
		w.Header().Set("ETag", strconv.Itoa(l.revision))
		c := map[string]any{"name": "ls-i1", "status": l.status, "config": maps.Clone(l.config)}
		if l.used != "" {
			c["last_used_at"] = l.used
		}
		answer(c)(w, r)
	case what == "PATCH instances/ls-i1":
		if l.meanwhile != nil {
			l.meanwhile(l)
			l.meanwhile = nil
		}
		if r.Header.Get("If-Match") != strconv.Itoa(l.revision) {
			refuse(http.StatusPreconditionFailed, "ETag doesn't match")(w, r)
			return
		}
		l.revision++
		maps.Copy(l.config, body.Config)
		answer(nil)(w, r)
	case what == "POST instances/ls-i1/files":
		l.documents++
		answer(nil)(w, r)
	case what == "GET instances/ls-i1/files":
		refuse(http.StatusNotFound, "Not Found")(w, r)
	case what == "PUT instances/ls-i1/state":
		l.start()
		answer(nil)(w, r)
	case what == "DELETE instances/ls-i1":
		if l.status != isStopped {
			refuse(http.StatusBadRequest, "Instance is running")(w, r)
			return
		}
		l.config = nil
		l.deleted++
		answer(nil)(w, r)
	default:
		l.t.Errorf("unexpected request: %s", what)
	}
}

func (l *oneContainer) start() {
	l.status, l.used = isRunning, time.Now().Format(time.RFC3339Nano)
}

// A container whose files cannot be written, and that never ran, is created again; any other stays.
//
// proves SAFE-8
func TestAContainerThatTakesNoFilesIsMadeAnew(t *testing.T) {
	begun := func(l *oneContainer) { // by another replica
		l.config[keyStep] = noteOf(stepStarting, time.Now())
		l.revision++
	}
	for name, test := range map[string]struct {
		l             oneContainer
		found         map[string]string // the container is there already, with these keys
		used          string
		made, deleted int
		hangs         bool
	}{
		"the first hangs":       {l: oneContainer{hanging: 1}, made: 2, deleted: 1},
		"two hang":              {l: oneContainer{hanging: 2}, made: 2, deleted: 1, hangs: true},
		"none hangs":            {made: 1},
		"an interrupted call's": {found: map[string]string{keyStep: noteOf(stepNew, time.Now())}},
		"its start was noted": {
			l: oneContainer{hanging: 9}, found: map[string]string{keyStep: noteOf(stepStarting, time.Now())}, hangs: true,
		},
		"it was started by hand": {
			l: oneContainer{hanging: 9}, found: map[string]string{keyStep: noteOf(stepNew, time.Now())},
			used: "2026-01-02T03:04:05Z", hangs: true,
		},
		"another call notes its start": {l: oneContainer{hanging: 9, meanwhile: begun}, made: 1, hangs: true},
		"another call starts it": {
			l: oneContainer{hanging: 9, meanwhile: func(l *oneContainer) { begun(l); l.start() }}, made: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &test.l
				l.t = t
				if test.found != nil {
					l.config, l.status, l.used = ours("", test.found)["config"].(map[string]string), isStopped, test.used
				}
				p, err := New(Config{Socket: "/none", Image: "tiny"})
				if err != nil {
					t.Fatal(err)
				}
				p.client.http = &http.Client{Transport: l}
				_, err = p.Create(t.Context(), request1())
				if errors.Is(err, errHangs) != test.hangs || !test.hangs && err != nil {
					t.Errorf("Create: %v", err)
				}
				if l.made != test.made || l.deleted != test.deleted {
					t.Errorf("%d made, %d deleted, want %d and %d", l.made, l.deleted, test.made, test.deleted)
				}
				if !test.hangs && name != "another call starts it" && l.documents != 2 {
					t.Errorf("%d files were written, want the directory and the document", l.documents)
				}
				if !test.hangs && l.status != isRunning || test.hangs && l.status == isRunning {
					t.Errorf("the container is %s", l.status)
				}
			})
		})
	}
}
