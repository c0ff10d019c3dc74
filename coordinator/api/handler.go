package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// Root is the path of the API.
const Root = "/api/v1/"

// Limits of what a request can make the server spend.
const (
	maxBody    = 512 << 10 // bytes of a group file and more
	editTime   = 12 * time.Second
	maxEdits   = 4  // at once: each has connections to etcd
	maxWatches = 32 // at once
)

// Edit is the revision that an edit is based on, and its options.
type Edit struct {
	If      *store.Revision // the group must still have it; 0: there must be no group; nil: an order
	DryRun  bool
	Confirm []string // names that confirm an edit that removes machines
	Once    string   // the key of an order and its repetitions; "": it is not repeated
}

// Editor edits a shard as a user of etcd. An error that a client can act on is a *Problem.
type Editor interface {
	// MayRead reports whether the user may read the shard.
	MayRead(ctx context.Context) bool
	Apply(ctx context.Context, group string, file []byte, edit Edit) (Result, error)
	Scale(ctx context.Context, group string, size int, edit Edit) (Result, error)
	Delete(ctx context.Context, group string, edit Edit) (Result, error)
	// Hold puts the shard on hold, Release ends that.
	Hold(ctx context.Context, hold Hold, edit Edit) (Result, error)
	Release(ctx context.Context, edit Edit) (Result, error)
	// Freeze stops planned work for a while; nil ends that.
	Freeze(ctx context.Context, freeze *Freeze, edit Edit) (Result, error)
	// Evacuate empties a zone; end: it may be used again.
	Evacuate(ctx context.Context, zone string, end bool, edit Edit) (Result, error)
	// Protect protects an instance; nil ends that.
	Protect(ctx context.Context, instance string, protection *Protection, edit Edit) (Result, error)
	// Drill causes a failure in a group on purpose.
	Drill(ctx context.Context, group string, drill Drill, edit Edit) (Result, error)
	// Create makes an instance on demand.
	Create(ctx context.Context, group string, edit Edit) (Result, error)
	// Adopt makes a record for a machine that has none.
	Adopt(ctx context.Context, instance string, adoption Adoption, edit Edit) (Result, error)
	// GroupAction performs one of GroupActions, InstanceAction one of InstanceActions.
	GroupAction(ctx context.Context, group, action string, edit Edit) (Result, error)
	InstanceAction(ctx context.Context, instance, action string, edit Edit) (Result, error)
}

// GroupActions are the actions on a group; true: it edits the spec, and requires If-Match.
var GroupActions = map[string]bool{
	"pause": true, "resume": true, "stop": true, "start": true, "restart": true, "rollback": true,
	"retry": false, "override-storm": false, "promote": false,
}

// InstanceActions are the orders about an instance.
var InstanceActions = []string{"replace", "restart", "drain", "drained", "delete"}

// DrillKinds are the failures that a drill causes: of one instance, or of all machines in a zone.
var DrillKinds = append(slices.Clone(store.DrillKinds), DrillOfZone)

// DrillOfZone is the kind of a drill that ends all machines of a group in a zone.
const DrillOfZone = "zone"

// Login opens an Editor for a user of etcd. A wrong password, or a user that is unknown, is an
// error that wraps store.ErrLogin.
type Login func(ctx context.Context, user, password string) (e Editor, leave func(), err error)

// Deps are the parts that the API works with.
type Deps struct {
	Views   *view.Source
	Cache   *cache.Cache
	Journal *journal.Memory
	Login   Login
}

// Handler serves the API.
type Handler struct {
	Deps
	mux     *http.ServeMux
	logins  *logins
	edits   chan struct{}
	watches chan struct{}
	end     <-chan struct{}
}

// New returns a handler. The returned function ends its watches.
func New(deps Deps) (h *Handler, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	h = &Handler{
		Deps: deps, mux: http.NewServeMux(), logins: newLogins(), edits: make(chan struct{}, maxEdits),
		watches: make(chan struct{}, maxWatches), end: ctx.Done(),
	}
	for pattern, do := range map[string]func(*http.Request) (any, error){
		"shard": h.shard, "groups": h.groups, "groups/{group}/status": h.status, "groups/{group}/instances": h.instances,
		"groups/{group}/drills": h.drills,
		"instances/{instance}":  h.instance, "events": h.events, "report": h.report,
	} {
		h.mux.HandleFunc("GET "+Root+pattern, h.reading(do))
	}
	h.mux.HandleFunc("GET "+Root+"groups/{group}", h.group)
	h.mux.HandleFunc("GET "+Root+"openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, OpenAPI())
	})
	for pattern, do := range map[string]func(context.Context, *http.Request, Editor, Edit) (Result, error){
		"PUT " + Root + "groups/{group}":                         h.apply,
		"DELETE " + Root + "groups/{group}":                      h.delete,
		"PUT " + Root + "groups/{group}/size":                    h.scale,
		"PUT " + Root + "shard/hold":                             h.hold,
		"DELETE " + Root + "shard/hold":                          h.release,
		"PUT " + Root + "shard/freeze":                           h.freeze,
		"DELETE " + Root + "shard/freeze":                        h.thaw,
		"PUT " + Root + "zones/{zone}/evacuation":                h.evacuate,
		"DELETE " + Root + "zones/{zone}/evacuation":             h.evacuated,
		"PUT " + Root + "instances/{instance}/protection":        h.protect,
		"DELETE " + Root + "instances/{instance}/protection":     h.unprotect,
		"POST " + Root + "groups/{group}/drills":                 h.drill,
		"POST " + Root + "groups/{group}/instances":              h.create,
		"POST " + Root + "instances/{instance}/adoption":         h.adopt,
		"POST " + Root + "groups/{group}/actions/{action}":       h.groupAction,
		"POST " + Root + "instances/{instance}/actions/{action}": h.instanceAction,
	} {
		h.mux.HandleFunc(pattern, h.editing(do))
	}
	return h, cancel
}

// ServeHTTP answers a request. The caller has decided whether the client may read.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.EscapedPath(), "//") || strings.Contains(r.URL.Path, "/.") {
		refuse(w, &Problem{Status: http.StatusNotFound, Detail: "there is nothing at this path"})
		return
	}
	if _, pattern := h.mux.Handler(r); pattern == "" {
		h.nowhere(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// nowhere answers a request for a path that does not exist.
func (h *Handler) nowhere(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		refuse(w, &Problem{
			Status: http.StatusNotFound, Detail: "there is nothing at this path",
			Remedies: story.Advise("read " + Root + "openapi.json"),
		})
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	refuse(w, &Problem{Status: http.StatusMethodNotAllowed, Detail: r.Method + " is not for this path"})
}

// answer sends a document.
func answer(w http.ResponseWriter, code int, document any) {
	text, err := json.Marshal(document)
	if err != nil { // documents consist of records that were read from JSON
		code, text = http.StatusInternalServerError, []byte(`{"status":500,"title":"Internal Server Error"}`)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // the client may be gone
}

// refuse sends why a request is not carried out.
func refuse(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	p.Title = http.StatusText(p.Status)
	answer(w, p.Status, p)
}

// tag formats a revision as an ETag.
func tag(r store.Revision) string { return `"` + strconv.FormatInt(int64(r), 10) + `"` }
