-- What is wrong with the tables on which the program relies, as sentences, the first
-- ones first. ?1 are the tables in JSON (storage.Relied).
WITH relied AS MATERIALIZED (
    SELECT value ->> 'Table' AS name, value -> 'Columns' AS columns, value -> 'Keys' AS keys, value -> 'Nullable' AS nullable, value -> 'Defaults' AS defaults, value -> 'Checks' AS checks,
        value ->> 'Unique' AS own, value ->> 'Where' AS condition
    FROM json_each(?1)
), objects AS (
    SELECT r.name AS owner, m.type, m.name, r.checks,
        replace(replace(replace(replace(m.sql, ' ', ''), char(9), ''), char(10), ''), char(13), '') AS definition
    FROM sqlite_schema m JOIN relied r ON r.name = m.tbl_name COLLATE NOCASE
), columns AS (
    SELECT r.name AS owner, c.name, c.pk, r.keys, c."notnull" AND c.dflt_value IS NULL AND c.name NOT IN (SELECT value FROM json_each(r.columns)) AS missing,
        c."notnull" AND (c.name IN (SELECT value FROM json_each(r.nullable)) OR c.dflt_value IS NULL AND c.name IN (SELECT value FROM json_each(r.defaults))) AS strict,
        c.name IN (SELECT value FROM json_each(r.nullable)) AND upper(c.dflt_value) <> 'NULL'
            OR c.name IN (SELECT value FROM json_each(r.defaults)) AND c.dflt_value NOT IN ('0', '''''', 'x''''', 'X''''') AS other
    FROM sqlite_schema m JOIN relied r ON r.name = m.name COLLATE NOCASE, pragma_table_info(m.name) c WHERE m.type = 'table'
), flaws (number, sentence) AS (
    SELECT 0, 'The table ' || owner || ' has the trigger ' || name || ', which may change or swallow rows. Run: DROP TRIGGER ' || name
    FROM objects WHERE type = 'trigger'

    UNION ALL SELECT 1, owner || ' is not a table, so that its rows may be elsewhere. Restore a backup.' FROM objects WHERE type = 'view'

    UNION ALL SELECT 2, 'The table ' || owner || ' lacks the condition ' || c.value || ', on which a sale relies. Restore a backup.'
    FROM objects, json_each(checks) c WHERE objects.type = 'table' AND instr(definition, 'CHECK(' || replace(c.value, ' ', '') || ')') = 0

    UNION ALL SELECT 2, 'The table ' || r.name || ' lacks the column ' || c.value || ': somebody has renamed or dropped it. Rename it back, or restore a backup.'
    FROM relied r JOIN sqlite_schema m ON m.name = r.name COLLATE NOCASE AND m.type = 'table', json_each(r.columns) c
    WHERE NOT EXISTS (SELECT 1 FROM pragma_table_info(m.name) t WHERE t.name = c.value COLLATE NOCASE)

    UNION ALL SELECT 3, 'The column ' || name || ' of the table ' || owner || ' needs a value, and the program does not know it. Give it a default, or restore a backup.'
    FROM columns WHERE missing

    UNION ALL SELECT 3, 'The column ' || name || ' of the table ' || owner || ' must not need a value. Restore a backup.'
    FROM columns WHERE strict

    UNION ALL SELECT 3, 'The column ' || name || ' of the table ' || owner || ' has another default, so that rows are stored with a wrong value. Restore a backup.'
    FROM columns WHERE other

    UNION ALL SELECT 7, 'The table ' || r.name || ' is missing: somebody has renamed or dropped it. Rename it back, or restore a backup.'
    FROM relied r WHERE EXISTS (SELECT 1 FROM objects) AND NOT EXISTS (SELECT 1 FROM sqlite_schema m WHERE m.name = r.name COLLATE NOCASE)

    UNION ALL SELECT 4, 'The table ' || owner || ' has no key (' || (SELECT group_concat(value, ', ' ORDER BY key) FROM json_each(keys)) ||
        '), so that rows may be there twice. Restore a backup.'
    FROM columns WHERE pk > 0 GROUP BY owner
    HAVING group_concat(name, ', ' ORDER BY name) <> (SELECT group_concat(value, ', ' ORDER BY key) FROM json_each(keys))

    UNION ALL SELECT 6, 'The table ' || r.name || ' has the unique index ' || l.name || ', which may refuse rows. ' ||
        CASE l.origin WHEN 'c' THEN 'Run: DROP INDEX ' || l.name ELSE 'Restore a backup.' END
    FROM relied r JOIN sqlite_schema m ON m.name = r.name COLLATE NOCASE AND m.type = 'table', pragma_index_list(m.name) l
    WHERE l."unique" = 1 AND l.origin <> 'pk' AND NOT EXISTS (SELECT 1 FROM pragma_index_info(l.name) c WHERE c.name = r.own)
        AND EXISTS (SELECT 1 FROM json_each(r.keys) k WHERE k.value NOT IN (SELECT c.name FROM pragma_index_info(l.name) c WHERE c.name IS NOT NULL))

    UNION ALL SELECT 5, 'The table ' || r.name || ' has no unique index of ' || r.own || ', so that a repeat may sell again. Run: CREATE UNIQUE INDEX ' ||
        r.name || '_' || r.own || ' ON ' || r.name || ' (' || r.own || ') WHERE ' || r.condition
    FROM relied r JOIN sqlite_schema m ON m.name = r.name COLLATE NOCASE AND m.type = 'table' WHERE r.own <> '' AND NOT EXISTS (
        SELECT 1 FROM pragma_index_list(m.name) l, pragma_index_info(l.name) c JOIN sqlite_schema i ON i.name = l.name
        WHERE l."unique" = 1 AND c.name = r.own AND instr(replace(i.sql, ' ', ''), '(' || r.own || ')WHERE' || replace(r.condition, ' ', '')) > 0
    )
)
SELECT sentence FROM flaws ORDER BY number, sentence LIMIT 1
