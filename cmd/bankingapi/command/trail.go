package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/domain/operation"
)

func trailCommand(p program) *cobra.Command {
	return group(&cobra.Command{
		Use:   "trail",
		Short: "Prove what happened, and check such proofs",
		Long: `The trail is a log that only grows. It has a hash of everything that happened, and a signed
checkpoint of it every second. With an earlier checkpoint one can prove that history was changed.`,
		Example: "  bankingapi trail checkpoint",
	}, trailKeygenCommand(p), trailKeyCommand(p), trailCheckpointCommand(p), trailProveCommand(p), trailCheckCommand(p), trailRekeyCommand(p))
}

func trailKeygenCommand(p program) *cobra.Command {
	var file string
	cmd := p.plain(&cobra.Command{
		Use:   "keygen NAME",
		Short: "Make a signing key",
		Long: `Makes a key that signs checkpoints, writes it to a new file and prints the public key that verifies
them. All replicas of one database need the same file (trail.key_file). NAME is the name of the log,
such as bank.example/log.`,
		Example: "  bankingapi trail keygen bank.example/log --file trail.key",
		Args:    named("NAME"),
	}, func(c *call) error {
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
	return needs(cmd, "file")
}

func trailKeyCommand(p program) *cobra.Command {
	return p.onBook(&cobra.Command{
		Use:     "key",
		Short:   "Print the public key of the trail",
		Long:    "Prints the key that verifies checkpoints, proofs and receipts. It is public: publish it.",
		Example: "  bankingapi trail key",
	}, nil, func(c *call) error {
		keeper, err := c.app.Trail()
		if err != nil {
			return err
		}
		return c.print("%s\n", keeper.VerifyingKey())
	})
}

func trailCheckpointCommand(p program) *cobra.Command {
	return p.onBook(&cobra.Command{
		Use:   "checkpoint",
		Short: "Sign everything up to now and print the checkpoint",
		Long: `Signs everything up to now and prints the checkpoint. Keep it where no administrator of the service
can change it: verify --against proves later that the log only grew.`,
		Example: "  bankingapi trail checkpoint > 2026-11.checkpoint",
	}, nil, func(c *call) error {
		keeper, err := c.app.Trail()
		if err != nil {
			return err
		}
		checkpoint, err := keeper.Checkpoint(c.Context())
		if err != nil {
			return err
		}
		return c.print("%s", checkpoint)
	})
}

func trailRekeyCommand(p program) *cobra.Command {
	return addActor(p.command(&cobra.Command{
		Use:   "rekey [NAME]",
		Short: "Begin another log with another key",
		Long: `Begins another log of the trail. Use it for a copy of a book that goes on by itself, or if the key
was lost or seen by others. Stop all replicas first, and run verify: the new log takes over all rows
as they are, and cannot tell whether they were changed before. It fails while a service uses the
database.

If trail.key_file has another key than the present log, the new log has that key. If not, the command
makes a key with this name and keeps the old key beside it. It prints the new public key, and the
newest checkpoint of the log that ends, which verifies what was proved so far.`,
		Example: `  bankingapi trail rekey
  bankingapi trail rekey bank.example/copy --as ayse`,
		Args: cobra.MaximumNArgs(1),
	}, func(c *call) error {
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
		keeper, err := c.app.Trail()
		if err != nil {
			return err
		}
		return c.print("%s\n", keeper.VerifyingKey())
	}))
}

type trailProveOptions struct{ operation, subscription, callerID string }

func trailProveCommand(p program) *cobra.Command {
	var o trailProveOptions
	cmd := p.onBook(&cobra.Command{
		Use:   "prove",
		Short: "Print a proof of an operation",
		Long: `Prints a file that proves what an operation did: its stored rows, and that they are in the signed
log. Name the operation by its ID, or by the CallerId of a subscription. The file has names of
customers and accounts.`,
		Example: `  bankingapi trail prove --operation 01935c3e-6d0e-7cc3-8d5e-3f0b8f6f2c11 > proof.json
  bankingapi trail prove --subscription mobile-app --caller-id 4711 > proof.json`,
	}, o.check, o.run)
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

func (o *trailProveOptions) run(c *call) error {
	keeper, err := c.app.Trail()
	if err != nil {
		return err
	}
	id, err := o.id(c)
	if err != nil {
		return err
	}
	proof, err := keeper.Prove(c.Context(), id)
	if err != nil {
		return err
	}
	return c.print("%s", proof)
}

// id finds the operation to prove.
func (o *trailProveOptions) id(c *call) (id operation.ID, err error) {
	if o.operation != "" {
		return parseID(o.operation)
	}
	found, err := c.office.OperationsOf(c.Context(), o.subscription, o.callerID)
	if errors.Is(err, backoffice.ErrNotFound) {
		return id, errors.New("this subscription has not used this CallerId")
	}
	if err != nil {
		return id, err
	}
	return found[0].ID, nil
}

func trailCheckCommand(p program) *cobra.Command {
	var key string
	cmd := p.plain(&cobra.Command{
		Use:   "check FILE",
		Short: "Check a proof or a receipt",
		Long: `Checks a proof of trail prove, or the value of a header Receipt, and prints what it proves. It needs
the public key and no database. - reads from standard input. It exits with status 1 if the proof
does not hold.`,
		Example: "  bankingapi trail check proof.json --key bank.example/log+a1b2c3d4+AbCd...",
		Args:    named("FILE"),
	}, func(c *call) error {
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
