"""Runs the cells of docs/unwedge.ipynb in their order."""

import ast
import contextlib
import io
import json
import pathlib
import unittest

NOTEBOOK = pathlib.Path(__file__).parents[2] / "docs" / "unwedge.ipynb"


class Notebook(unittest.TestCase):
    def test_every_cell_runs(self):
        cells = json.loads(NOTEBOOK.read_text())["cells"]
        names, shown = {}, []
        for cell in (cell for cell in cells if cell["cell_type"] == "code"):
            tree = ast.parse("".join(cell["source"]))
            # A notebook shows the value of the last expression.
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(tree, "cell", "exec"), names)
                if last is not None:
                    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
                    if value is not None:
                        print(repr(value))
            shown.append(out.getvalue())
        self.assertGreater(len(shown), 6)
        self.assertTrue(all(shown[:1] + shown[1:3]), "cells that print nothing")
        self.assertIn("s_endpgm", shown[-1])


if __name__ == "__main__":
    unittest.main()
