package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// editing carries out an edit as the user that the request names.
func (h *Handler) editing(do func(context.Context, *http.Request, Editor, Edit) (Result, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		result, err := h.edit(w, r, do)
		if err != nil {
			p := problemOf(err)
			switch p.Status {
			case http.StatusUnauthorized:
				w.Header().Set("WWW-Authenticate", `Basic realm="etcd", charset="UTF-8"`)
			case http.StatusTooManyRequests, http.StatusServiceUnavailable:
				w.Header().Set("Retry-After", "5")
			}
			refuse(w, p)
			return
		}
		code := http.StatusOK
		if result.Order != "" {
			code = http.StatusAccepted
		}
		if result.Revision != 0 {
			w.Header().Set("ETag", tag(result.Revision))
		}
		answer(w, code, result)
	}
}

func (h *Handler) edit(w http.ResponseWriter, r *http.Request,
	do func(context.Context, *http.Request, Editor, Edit) (Result, error),
) (Result, error) {
	edit, err := editOf(r)
	if err != nil {
		return Result{}, err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	ctx, cancel := context.WithTimeout(r.Context(), editTime)
	defer cancel()
	editor, leave, err := h.login(ctx, r)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	return do(ctx, r, editor, edit)
}

// editOf reads how an edit is to be made.
func editOf(r *http.Request) (Edit, error) {
	q := r.URL.Query()
	e := Edit{Confirm: q["confirm"]}
	switch text := q.Get("dryRun"); text {
	case "", "false":
	case "true":
		e.DryRun = true
	default:
		return e, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("dryRun: %q: must be true or false", text)}
	}
	if r.Method == http.MethodPost {
		var err error
		if e.Once, err = onceOf(r); err != nil {
			return e, err
		}
	}
	match, none := r.Header.Values("If-Match"), r.Header.Values("If-None-Match")
	switch {
	case len(match) == 0 && len(none) == 0:
		return e, nil
	case len(match)+len(none) > 1, len(none) == 1 && strings.TrimSpace(none[0]) != "*":
		return e, &Problem{
			Status: http.StatusBadRequest,
			Detail: "give one If-Match with the ETag of the group, or If-None-Match: * where there must be none",
		}
	case len(none) == 1:
		e.If = new(store.Revision)
		return e, nil
	}
	text := strings.TrimSpace(match[0])
	n, err := strconv.ParseInt(strings.Trim(text, `"`), 10, 64)
	if err != nil || n < 1 || text != tag(store.Revision(n)) {
		return e, &Problem{
			Status: http.StatusBadRequest, Detail: fmt.Sprintf(`If-Match: %s: must be one ETag, such as "81"`, text),
		}
	}
	rev := store.Revision(n)
	e.If = &rev
	return e, nil
}

// maxKey is the longest Idempotency-Key.
const maxKey = 255

// onceOf reads the key with which an order may be repeated. It counts for one path.
func onceOf(r *http.Request) (string, error) {
	keys := r.Header.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	odd := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(keys) > 1 || keys[0] == "" || len(keys[0]) > maxKey || strings.ContainsFunc(keys[0], odd) {
		return "", &Problem{
			Status: http.StatusBadRequest,
			Detail: fmt.Sprintf("Idempotency-Key: must be one word of at most %d ASCII characters, such as a UUID", maxKey),
		}
	}
	return r.URL.Path + "\n" + keys[0], nil
}

// based requires the revision that an edit is based on.
func (e Edit) based() error {
	if e.If != nil {
		return nil
	}
	return &Problem{
		Status: http.StatusPreconditionRequired,
		Detail: "an edit names the revision that it is based on: If-Match with the ETag of what it edits, " +
			"or If-None-Match: * for a new group",
	}
}

func bodyOf(r *http.Request, types ...string) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(types, kind) {
		return nil, &Problem{
			Status: http.StatusUnsupportedMediaType, Detail: "Content-Type: must be " + strings.Join(types, " or "),
		}
	}
	text, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &Problem{
			Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body has more than %d bytes", maxBody),
		}
	case err != nil:
		return nil, &Problem{Status: http.StatusBadRequest, Detail: "the body ended before its length"}
	}
	return text, nil
}

func (h *Handler) apply(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.based(); err != nil {
		return Result{}, err
	}
	file, err := bodyOf(r, "application/json", "application/yaml")
	if err != nil {
		return Result{}, err
	}
	return to.Apply(ctx, r.PathValue("group"), file, e)
}

func (h *Handler) scale(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.based(); err != nil {
		return Result{}, err
	}
	text, err := bodyOf(r, "application/json")
	if err != nil {
		return Result{}, err
	}
	var wanted struct {
		Size *int `json:"size"`
	}
	if err := json.Unmarshal(text, &wanted); err != nil || wanted.Size == nil {
		return Result{}, &Problem{Status: http.StatusUnprocessableEntity, Detail: `the body must be like {"size": 3}`}
	}
	return to.Scale(ctx, r.PathValue("group"), *wanted.Size, e)
}

func (h *Handler) delete(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.based(); err != nil {
		return Result{}, err
	}
	return to.Delete(ctx, r.PathValue("group"), e)
}

func (h *Handler) groupAction(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	action := r.PathValue("action")
	edits, known := GroupActions[action]
	if !known {
		return Result{}, absent("action of groups", action)
	}
	if edits {
		if err := e.based(); err != nil {
			return Result{}, err
		}
	}
	if err := e.onlyForReal(); err != nil {
		return Result{}, err
	}
	return to.GroupAction(ctx, r.PathValue("group"), action, e)
}

func (h *Handler) instanceAction(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	action := r.PathValue("action")
	if !slices.Contains(InstanceActions, action) {
		return Result{}, absent("action of instances", action)
	}
	if err := e.onlyForReal(); err != nil {
		return Result{}, err
	}
	return to.InstanceAction(ctx, r.PathValue("instance"), action, e)
}

// onlyForReal refuses a dry run where there is none, so that a real edit is not taken for one.
func (e Edit) onlyForReal() error {
	if !e.DryRun {
		return nil
	}
	return &Problem{Status: http.StatusBadRequest, Detail: "dryRun: only changes of a group's spec have a dry run"}
}

// problemOf is an error as clients read it. Errors that are not made for clients reveal no
// internals.
func problemOf(err error) *Problem {
	var p *Problem
	switch {
	case errors.As(err, &p):
		known := *p
		return &known
	case errors.Is(err, store.ErrDenied):
		return &Problem{Status: http.StatusForbidden, Detail: "etcd does not permit that to this user"}
	case errors.Is(err, store.ErrUnknown):
		return &Problem{
			Status: http.StatusGatewayTimeout, Remedies: story.Advise("read it again"),
			Detail: "etcd's answer was lost: it may or may not have been done",
		}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Problem{
			Status: http.StatusServiceUnavailable, Detail: "etcd does not answer", Remedies: story.Advise("try again"),
		}
	}
	return &Problem{Status: http.StatusInternalServerError, Detail: "this failed; the commands may say more"}
}
