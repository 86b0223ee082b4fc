package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
)

func trailCommand(p program) *cobra.Command {
	return group(described("trail"), trailKeygenCommand(p), printsTrail(p, described("trail key"), nil, publicKey),
		printsTrail(p, described("trail checkpoint"), nil, checkpoint), trailProveCommand(p), trailCheckCommand(p), trailRekeyCommand(p))
}

func trailKeygenCommand(p program) *cobra.Command {
	var file string
	var keep bool
	cmd := p.plain(described("trail keygen"), func(c *call) error {
		if _, err := os.Stat(file); keep && err == nil {
			c.tell("%s exists and stays as it is.\n", file)
			return nil
		}
		signing, verifying, err := bootstrap.NewTrailKey(c.args[0])
		if err != nil {
			return wrongUse{err.Error()}
		}
		f, err := newFile(file)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(f, signing)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		return c.print("%s\n", verifying)
	})
	cmd.Flags().StringVar(&file, "file", "", "write the signing key to this new `file`")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave an existing file as it is")
	return needs(cmd, "file")
}

// printsTrail completes a command that prints something of the trail.
func printsTrail(p program, cmd *cobra.Command, check func(*call) error, what func(*call) (string, error)) *cobra.Command {
	return p.onBook(cmd, check, func(c *call) error {
		if _, err := c.app.Trail(); err != nil {
			return err
		}
		text, err := what(c)
		if err != nil {
			return err
		}
		return c.print("%s", text)
	})
}

func publicKey(c *call) (string, error) {
	keeper, err := c.app.Trail()
	if err != nil {
		return "", err
	}
	return keeper.VerifyingKey() + "\n", nil
}

func checkpoint(c *call) (string, error) {
	keeper, _ := c.app.Trail()
	return keeper.Checkpoint(c.Context())
}

func trailRekeyCommand(p program) *cobra.Command {
	return addActor(p.command(described("trail rekey"), func(c *call) error {
		if err := bootstrap.CheckAlone(c.Context(), c.settings, c.options, bootstrap.WithBookAsItIs()); err != nil {
			return err
		}
		if err := c.openBook(); err != nil {
			return err
		}
		last, err := c.app.Rekey(c.Context(), strings.Join(c.args, ""))
		if err != nil {
			return err
		}
		if last != "" {
			c.tell("The log that ended had this checkpoint. Keep it with its public key:\n\n%s\n", last)
		}
		key, err := publicKey(c)
		if err != nil {
			return err
		}
		return c.print("%s", key)
	}))
}

type trailProveOptions struct{ operation, subscription, callerID string }

func trailProveCommand(p program) *cobra.Command {
	var o trailProveOptions
	cmd := printsTrail(p, described("trail prove"), o.check, o.prove)
	cmd.Flags().StringVar(&o.operation, "operation", "", "`ID` of the operation, import or act")
	cmd.Flags().StringVar(&o.subscription, "subscription", "", "`name` of the subscription that used the CallerId")
	cmd.Flags().StringVar(&o.callerID, "caller-id", "", "the `CallerId` of the operation")
	return cmd
}

func (o *trailProveOptions) check(*call) error {
	byCaller := o.subscription != "" || o.callerID != ""
	switch {
	case byCaller == (o.operation != ""):
		return wrongUsef("either --operation, or --subscription and --caller-id is needed")
	case byCaller && (o.subscription == "" || o.callerID == ""):
		return wrongUsef("--subscription and --caller-id belong together")
	case byCaller:
		return nil
	}
	_, err := parseID(o.operation)
	return err
}

func (o *trailProveOptions) prove(c *call) (string, error) {
	keeper, _ := c.app.Trail()
	id, err := parseID(o.operation)
	if o.operation == "" {
		var found []backoffice.Operation
		if found, err = c.office.OperationsOf(c.Context(), o.subscription, o.callerID); err == nil {
			id = found[0].ID
		} else if errors.Is(err, backoffice.ErrNotFound) {
			err = errors.New("this subscription has not used this CallerId")
		}
	}
	if err != nil {
		return "", err
	}
	proof, err := keeper.Prove(c.Context(), id)
	return string(proof), err
}

func trailCheckCommand(p program) *cobra.Command {
	var key string
	cmd := p.plain(described("trail check"), func(c *call) error {
		file, err := c.readInput(c.args[0])
		if err != nil {
			return err
		}
		facts, err := bootstrap.CheckTrailProof(file, key)
		if err != nil {
			return fmt.Errorf("the proof does not hold: %w", err)
		}
		return c.print("%s\n", strings.Join(facts, "\n"))
	})
	cmd.Flags().StringVar(&key, "key", "", "the public `key` (see trail key)")
	return needs(cmd, "key")
}
