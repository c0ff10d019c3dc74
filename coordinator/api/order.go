package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// wantedBody reads a body that is small and has known fields only. Errors show the example.
func wantedBody(r *http.Request, into any, example string) error {
	text, err := bodyOf(r, "application/json")
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil || !errors.Is(d.Decode(new(any)), io.EOF) {
		return &Problem{Status: http.StatusUnprocessableEntity, Detail: "the body must be like " + example}
	}
	return nil
}

// forReal requires the revision of what is edited, and refuses a dry run.
func (e Edit) forReal() error {
	if err := e.based(); err != nil {
		return err
	}
	return e.onlyForReal()
}

func (h *Handler) hold(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.forReal(); err != nil {
		return Result{}, err
	}
	var wanted Hold
	const example = `{"why": "etcd is restored"}`
	if err := wantedBody(r, &wanted, example); err != nil {
		return Result{}, err
	}
	if wanted.Why == "" {
		return Result{}, &Problem{Status: http.StatusUnprocessableEntity, Detail: "why: missing, as in " + example}
	}
	return to.Hold(ctx, wanted, e)
}

func (h *Handler) release(ctx context.Context, _ *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.based(); err != nil {
		return Result{}, err
	}
	return to.Release(ctx, e)
}

func (h *Handler) freeze(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.forReal(); err != nil {
		return Result{}, err
	}
	wanted := &Freeze{}
	if err := wantedBody(r, wanted, `{"why": "black friday", "until": "2026-11-30T06:00:00Z"}`); err != nil {
		return Result{}, err
	}
	return to.Freeze(ctx, wanted, e)
}

func (h *Handler) thaw(ctx context.Context, _ *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.forReal(); err != nil {
		return Result{}, err
	}
	return to.Freeze(ctx, nil, e)
}

func (h *Handler) evacuate(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.forReal(); err != nil {
		return Result{}, err
	}
	return to.Evacuate(ctx, r.PathValue("zone"), false, e)
}

func (h *Handler) evacuated(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.forReal(); err != nil {
		return Result{}, err
	}
	return to.Evacuate(ctx, r.PathValue("zone"), true, e)
}

func (h *Handler) protect(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.forReal(); err != nil {
		return Result{}, err
	}
	wanted := &Protection{}
	if err := wantedBody(r, wanted, `{"why": "it is examined", "until": "2026-11-30T06:00:00Z"}`); err != nil {
		return Result{}, err
	}
	return to.Protect(ctx, r.PathValue("instance"), wanted, e)
}

func (h *Handler) unprotect(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.forReal(); err != nil {
		return Result{}, err
	}
	return to.Protect(ctx, r.PathValue("instance"), nil, e)
}

func (h *Handler) drill(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.onlyForReal(); err != nil {
		return Result{}, err
	}
	var wanted Drill
	if err := wantedBody(r, &wanted, `{"kind": "machine", "instance": "web-0-ab12cd"}`); err != nil {
		return Result{}, err
	}
	wrong := ""
	switch ofZone := wanted.Kind == DrillOfZone; {
	case !slices.Contains(DrillKinds, wanted.Kind):
		wrong = fmt.Sprintf("kind: %.40q: must be one of %s", wanted.Kind, strings.Join(DrillKinds, ", "))
	case ofZone && (wanted.Zone == "" || wanted.Instance != ""):
		wrong = "a drill of a zone names the zone, and no instance"
	case !ofZone && wanted.Zone != "":
		wrong = "zone: only a drill of the kind zone names one"
	}
	if wrong != "" {
		return Result{}, &Problem{Status: http.StatusUnprocessableEntity, Detail: wrong}
	}
	return to.Drill(ctx, r.PathValue("group"), wanted, e)
}

func (h *Handler) create(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.onlyForReal(); err != nil {
		return Result{}, err
	}
	return to.Create(ctx, r.PathValue("group"), e)
}

func (h *Handler) adopt(ctx context.Context, r *http.Request, to Editor, e Edit) (Result, error) {
	if err := e.onlyForReal(); err != nil {
		return Result{}, err
	}
	var wanted Adoption
	if err := wantedBody(r, &wanted, `{"group": "web", "slot": 2}, or {}`); err != nil {
		return Result{}, err
	}
	return to.Adopt(ctx, r.PathValue("instance"), wanted, e)
}
