package libvirt

import (
	"errors"
	"strings"

	api "github.com/digitalocean/go-libvirt"

	"github.com/leasehold/leasehold/provider"
)

// is reports whether libvirt said that, by the number of its error.
func is(err error, numbers ...api.ErrorNumber) bool {
	var e api.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, n := range numbers {
		if e.Code == uint32(n) {
			return true
		}
	}
	return false
}

// fromLibvirt reports whether an error is libvirt's own.
func fromLibvirt(err error) bool {
	var e api.Error
	return errors.As(err, &e)
}

func gone(err error) bool { return is(err, api.ErrNoDomain) }

// says reports whether libvirt's text has one of these parts. It is asked where the number of an
// error says no more than that something failed.
func says(err error, texts ...string) bool {
	var e api.Error
	if !errors.As(err, &e) {
		return false
	}
	message := strings.ToLower(e.Message)
	for _, t := range texts {
		if strings.Contains(message, t) {
			return true
		}
	}
	return false
}

// Texts of libvirt 9 and QEMU 7.
var (
	full = []string{
		"no space left on device", "cannot allocate memory", "cannot set up guest memory", "disk quota exceeded",
		"unable to allocate memory",
	}
	invalid = []string{
		"no network with matching name", "no storage vol", "does not support machine type", "unsupported machine type",
		"maximum cpus greater than", "is not active", "could not get access to acl", "unable to find any emulator",
		"does not support virt type", "exceeds the maximum",
	}
)

// meaning gives an error of libvirt's its kind (PROV-5). The scope is where capacity is missing, if
// that is the error.
func (h *hypervisor) meaning(err error, scope string) error {
	var e api.Error
	if !errors.As(err, &e) {
		return err
	}
	known := func(kind provider.Kind, scope string) error {
		return &provider.Error{Kind: kind, Scope: scope, Message: e.Message}
	}
	switch {
	case is(err, api.ErrAuthFailed, api.ErrAuthCancelled, api.ErrAuthUnavailable, api.ErrAccessDenied,
		api.ErrOperationDenied):
		return known(provider.Credentials, h.where)
	case says(err, full...), is(err, api.ErrNoMemory):
		return known(provider.Capacity, h.scope(scope))
	case is(err, api.ErrNoNetwork, api.ErrConfigUnsupported, api.ErrXMLError, api.ErrXMLDetail), says(err, invalid...):
		e.Message += nextStep(err)
		return known(provider.Invalid, "")
	}
	return err
}

// nextStep says what helps against an error that a wrong set-up causes; "" if that is not known.
func nextStep(err error) string {
	switch {
	case says(err, "virt type 'kvm'"):
		return ": the hypervisor has no KVM: load its kernel module, or set emulate: true for the provider"
	case is(err, api.ErrNoNetwork), says(err, "no network with matching name"):
		return ": virsh net-list --all lists the networks; without any, set user_network: true for the provider to try it out"
	case says(err, "network") && says(err, "is not active"):
		return ": virsh net-start NAME"
	}
	return ""
}

func (h *hypervisor) scope(of string) string {
	if of == "" {
		return "zone " + h.zone
	}
	return "zone " + h.zone + ", " + of
}
