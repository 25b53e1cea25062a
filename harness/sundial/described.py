# SPDX-License-Identifier: Apache-2.0
"""Docstrings of fields, which are their descriptions in JSON Schemas and help.

Pydantic would read them out of the sources whenever a class is made, which every command would pay for.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Described(BaseModel):
    """A model whose JSON Schema describes each field by the docstring beneath it, unless the field says it itself."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, said in descriptions(cls).items():
            known = properties.get(cls.model_fields[name].alias or name)
            if known is not None:
                known.setdefault("description", said)
        return schema


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """The docstring of each field that has one, those of bases included."""
    found: dict[str, str] = {}
    for part in reversed(model.__mro__):
        if issubclass(part, BaseModel) and part is not BaseModel:
            found.update(_own(part))
    return {name: said for name, said in found.items() if name in model.model_fields}


@cache
def _own(model: type[BaseModel]) -> dict[str, str]:
    """Of the fields in the body of this class."""
    (written,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(written, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(said.value.value)
        for field, said in pairwise(written.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant) and isinstance(said.value.value, str)
    }
