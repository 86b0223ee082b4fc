WITH listed AS (
    SELECT * FROM jsonb_to_recordset($1::text::jsonb)
        AS r("Table" text, "Columns" text[], "Kinds" text[], "Keys" text[], "Nullable" text[], "Defaults" text[], "Unique" text, "Where" text, "Checks" text[], "Rights" text[])
), types (kind, name, accepted) AS ( -- of columns; the first type is that of the schema
    VALUES ('integer', 'bigint', '{int8,int4,int2}'::regtype[]), ('text', 'text', '{text,varchar}'), ('bytes', 'bytea', '{bytea}'),
        ('identifier', 'uuid', '{uuid}'), ('date', 'date', '{date}'), ('time', 'timestamptz', '{timestamptz}')
), relied AS (
    -- The first thing that is wrong with the tables on which the program relies, as a
    -- sentence with the SQL that mends it, the schema of the book, and the tables for
    -- unchanged. There is always one row; all are empty if there is no book, and the
    -- first one if nothing is wrong.
    --
    -- $1 are the tables in JSON (storage.Relied), $2 is the table with the version of the
    -- schema, and $3 is the schema of the book, or empty while it is not known. $4 are the
    -- sentences, in which %1$s is the name of the table, %2$s what it is about, %3$s the
    -- schema of the book and %4$s the role.
    SELECT to_regclass(r."Table")::oid AS oid, r."Table" AS name, r."Columns" AS columns, r."Kinds" AS kinds, r."Keys" AS keys, r."Nullable" AS nullable, r."Defaults" AS defaults, r."Unique" AS own, r."Where" AS only_where, r."Checks" AS checks, r."Rights" AS rights
    FROM listed r WHERE to_regclass(r."Table") IS NOT NULL
), parts AS (
    SELECT oid, name FROM relied
    UNION SELECT i.inhrelid, r.name FROM relied r JOIN pg_inherits i ON i.inhparent = r.oid
), home AS (
    SELECT COALESCE(NULLIF($3::text, ''), (
        SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($2::text)
    )) AS name
), flaws (number, name, object) AS ( -- each has a line in relied.txt
    SELECT CASE WHEN EXISTS (SELECT FROM pg_class v JOIN pg_namespace s ON s.oid = v.relnamespace WHERE s.nspname = home.name AND v.relname = $2::text) THEN 1 ELSE 24 END,
        c.oid::regclass::text, n.nspname::text
    FROM relied r JOIN pg_class c ON c.oid = r.oid JOIN pg_namespace n ON n.oid = c.relnamespace, home WHERE n.nspname <> home.name

    UNION ALL SELECT 2, r.name, ''
    FROM relied r JOIN pg_class c ON c.oid = r.oid WHERE c.relkind NOT IN ('r', 'p')

    UNION ALL SELECT 3, r.name, c.oid::regclass::text
    FROM parts r JOIN pg_class c ON c.oid = r.oid WHERE c.relpersistence <> 'p'

    UNION ALL SELECT 4, r.name, array_to_string(r.keys, ', ')
    FROM relied r WHERE NOT EXISTS (
        -- The column that identifies the rows may be the key: so it is where a table is split by it.
        SELECT FROM pg_index i
        WHERE i.indrelid = r.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
        AND (r.keys = (
            SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE "C") FROM pg_attribute a
            WHERE a.attrelid = r.oid AND a.attnum = ANY ((string_to_array(i.indkey::text, ' ')::int[])[1:i.indnkeyatts])
        ) OR i.indnkeyatts = 1 AND EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attnum = i.indkey[0] AND a.attname::text = r.own
        ))
    )

    UNION ALL SELECT 11, r.name, r.own || ') WHERE (' || r.only_where
    FROM relied r WHERE r.own <> '' AND NOT EXISTS (
        SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = r.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indnkeyatts = 1 AND a.attname::text = r.own
        AND (i.indpred IS NULL OR replace(replace(pg_get_expr(i.indpred, i.indrelid), '"', ''), '::text', '') = '(' || r.only_where || ')')
    )

    UNION ALL SELECT 5, r.name, k.condition
    FROM relied r, unnest(r.checks) AS k(condition) WHERE NOT EXISTS (
        SELECT FROM pg_constraint c WHERE c.conrelid = r.oid AND c.contype = 'c'
        AND replace(pg_get_constraintdef(c.oid), '"', '') = 'CHECK ((' || condition || '))'
    )

    UNION ALL SELECT 6, r.oid::regclass::text, quote_ident(t.tgname)
    FROM parts r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal AND t.tgenabled NOT IN ('D', 'R')

    UNION ALL SELECT 7, r.name, quote_ident(w.rulename)
    FROM relied r JOIN pg_rewrite w ON w.ev_class = r.oid WHERE w.ev_enabled NOT IN ('D', 'R')

    UNION ALL SELECT 8, r.name, ''
    FROM relied r WHERE row_security_active(r.oid)

    UNION ALL SELECT 9, r.name, quote_ident(a.attname)
    FROM relied r JOIN pg_attribute a ON a.attrelid = r.oid
    WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND NOT a.attname::text = ANY (r.columns)

    UNION ALL SELECT 12, r.name, quote_ident(a.attname)
    FROM relied r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attname::text = ANY (r.nullable) WHERE a.attnotnull

    UNION ALL SELECT 13, r.name, quote_ident(a.attname) || ' SET DEFAULT ' || CASE WHEN a.atttypid = ANY ('{int2,int4,int8}'::regtype[]) THEN '0' ELSE quote_literal('') END
    FROM relied r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attname::text = ANY (r.defaults) WHERE a.attnotnull AND NOT a.atthasdef

    UNION ALL SELECT 14, r.name, c.name
    FROM relied r, unnest(r.columns) AS c(name) WHERE NOT EXISTS (
        SELECT FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname::text = c.name
    )

    UNION ALL SELECT CASE WHEN EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.conrelid = r.oid) THEN 15 ELSE 16 END,
        r.name, i.indexrelid::regclass::text
    FROM relied r JOIN pg_index i ON i.indrelid = r.oid CROSS JOIN LATERAL (
        SELECT COALESCE(array_agg(a.attname::text), '{}') AS names FROM pg_attribute a
        WHERE a.attrelid = r.oid AND a.attnum = ANY ((string_to_array(i.indkey::text, ' ')::int[])[1:i.indnkeyatts])
    ) columns WHERE i.indisunique AND i.indisready AND NOT i.indisprimary AND NOT r.keys <@ columns.names AND NOT r.own = ANY (columns.names)

    UNION ALL SELECT 10, r.name, kind
    FROM relied r, unnest(r.rights) AS p(kind)
    WHERE NOT CASE kind
        WHEN 'DELETE' THEN has_table_privilege(r.oid, kind)
        WHEN 'UPDATE' THEN has_any_column_privilege(r.oid, kind) -- not all columns are ever changed
        ELSE NOT EXISTS (
            SELECT FROM pg_attribute a
            WHERE a.attrelid = r.oid AND a.attname::text = ANY (r.columns) AND NOT a.attisdropped AND NOT has_column_privilege(r.oid, a.attnum, kind)
        )
    END

    UNION ALL SELECT 17, quote_ident(r."Table"), '' FROM listed r WHERE to_regclass(r."Table") IS NULL

    -- A value of another type may be rounded, cut or filled up, and verify accuses its operation.
    UNION ALL SELECT CASE WHEN a.attgenerated <> '' THEN 21 WHEN a.attidentity = 'a' THEN 22 ELSE 18 END,
        r.name, quote_ident(a.attname) || CASE WHEN a.attgenerated <> '' OR a.attidentity = 'a' THEN '' ELSE ' TYPE ' || t.name END
    FROM relied r, unnest(r.columns, r.kinds) AS c(name, kind) JOIN types t ON t.kind = c.kind, pg_attribute a
    WHERE a.attrelid = r.oid AND a.attname::text = c.name AND (
        a.attgenerated <> '' OR a.attidentity = 'a' OR NOT a.atttypid = ANY (t.accepted) OR a.atttypmod NOT IN (-1, 6)
        OR EXISTS (SELECT FROM pg_collation l WHERE l.oid = a.attcollation AND NOT l.collisdeterministic)
    )

    UNION ALL SELECT CASE WHEN a.attname::text = ANY (r.nullable) THEN 23 ELSE 19 END, r.name, quote_ident(a.attname) || CASE
        WHEN a.attname::text = ANY (r.nullable) THEN ''
        WHEN a.atttypid = ANY ('{int2,int4,int8}'::regtype[]) THEN ' SET DEFAULT 0'
        ELSE ' SET DEFAULT ' || quote_literal('')
    END
    FROM relied r JOIN pg_attribute a ON a.attrelid = r.oid JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum AND a.attgenerated = ''
    WHERE a.attname::text = ANY (r.nullable)
        OR a.attname::text = ANY (r.defaults) AND split_part( -- of no bytes it is two characters, or three
            regexp_replace(pg_get_expr(d.adbin, d.adrelid), chr(92) || chr(92) || '+x', ''), '::', 1) NOT IN ('0', quote_literal('0'), quote_literal(''))

    UNION ALL SELECT 20, r.name, i.inhrelid::regclass::text
    FROM relied r JOIN pg_class c ON c.oid = r.oid AND c.relkind = 'r' JOIN pg_inherits i ON i.inhparent = r.oid

    UNION ALL SELECT 10, $2::text, 'SELECT' WHERE NOT has_any_column_privilege(to_regclass($2::text)::oid, 'SELECT')
)
SELECT COALESCE(format(($4::text[])[f.number], f.name, f.object, quote_ident(home.name), quote_ident(current_user)), ''), COALESCE(home.name, ''),
    COALESCE((
        SELECT jsonb_object_agg(r.name, jsonb_build_object(
            'OID', r.oid::bigint,
            'Own', COALESCE((SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attname::text = r.own), 0),
            'Conditions', cardinality(r.checks)
        ))::text FROM relied r
    ), '{}')
FROM home LEFT JOIN flaws f ON home.name IS NOT NULL ORDER BY f.number, f.name, f.object LIMIT 1
