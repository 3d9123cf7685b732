"""Which nodes of a parse tree are definitions: one tree-sitter query per language.

Captures: ``@def`` is a definition and ``@name`` its name; ``@owner`` is a type named outside of it (a Go receiver);
``@end`` is a sibling that belongs to it (a body); ``@value`` is a definition if it is longer than one line (a table of
constants); ``@lead`` is a comment, decorator or attribute that belongs to the definition directly below. A definition
inside another is only a place for a cut when the outer one is too long, so it does no harm to name too many.
"""

from __future__ import annotations


def named(types: str, name: str = "name: (_)", rest: str = "") -> str:
    """Patterns for node types (divided by spaces) whose name is found in the same way."""
    return "\n".join(f"({one} {name} @name {rest}) @def" for one in types.split())


def unnamed(types: str) -> str:
    return "\n".join(f"({one}) @def" for one in types.split())


def leads(types: str) -> str:
    return "\n".join(f"({one}) @lead" for one in types.split())


_FUNCTION_VALUE = "[(arrow_function) (function_expression) (generator_function) (class)]"

_JAVASCRIPT = f"""
{named("function_declaration generator_function_declaration class_declaration method_definition")}
(lexical_declaration (variable_declarator name: (_) @name value: {_FUNCTION_VALUE})) @def
(variable_declaration (variable_declarator name: (_) @name value: {_FUNCTION_VALUE})) @def
(expression_statement (assignment_expression left: (_) @name right: {_FUNCTION_VALUE})) @def
(pair key: (_) @name value: {_FUNCTION_VALUE}) @def
(program (lexical_declaration (variable_declarator name: (_) @name)) @value)
(export_statement (lexical_declaration (variable_declarator name: (_) @name))) @value
(expression_statement (call_expression function: [(identifier) (member_expression)] @call
  arguments: (arguments . [(string) (template_string)] @name [(arrow_function) (function_expression)]))
  (#match? @call "^(describe|it|test|suite|context|bench)(\\\\.[a-z]+)?$")) @def
{leads("comment decorator")}
"""

_TYPESCRIPT = f"""
{
    named(
        "interface_declaration enum_declaration type_alias_declaration abstract_class_declaration internal_module "
        "module function_signature method_signature abstract_method_signature"
    )
}
(public_field_definition name: (_) @name value: {_FUNCTION_VALUE}) @def
{_JAVASCRIPT}
"""

_C = f"""
{named("function_definition", "declarator: (_)")}
{named("struct_specifier enum_specifier union_specifier", rest="body: (_)")}
(type_definition type: [(struct_specifier) (enum_specifier) (union_specifier)] declarator: (_) @name) @def
{named("preproc_function_def")}
(translation_unit (declaration declarator: (init_declarator declarator: (_) @name)) @value)
{leads("comment")}
"""

_CPP = f"""
{named("namespace_definition concept_definition alias_declaration")}
{named("class_specifier", rest="body: (_)")}
(template_declaration [
  (class_specifier name: (_) @name) (struct_specifier name: (_) @name) (function_definition declarator: (_) @name)
  (alias_declaration name: (_) @name) (concept_definition name: (_) @name)]) @def
(declaration (init_declarator declarator: (_) @name value: (lambda_expression))) @def
{_C}
"""

# Module and function of a grammar that is not ``tree_sitter_LANGUAGE.language``.
ENTRY_POINTS: dict[str, tuple[str, str]] = {
    "csharp": ("tree_sitter_c_sharp", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "php": ("tree_sitter_php", "language_php"),
}

# Not D, whose grammar takes the process down on some texts, nor Perl, whose grammar is slow. Where the patterns of
# ``regex_outline.py`` find as much (SQL, OCaml, F#, Fortran …), a grammar of 5 to 15 MB is not worth its size.
QUERIES: dict[str, str] = {
    "python": f"""
        {named("function_definition class_definition")}
        (module (expression_statement (assignment left: (_) @name)) @value)
        {leads("comment decorator")}""",
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": f"""
        {named("function_declaration")}
        (method_declaration receiver: (_) @owner name: (_) @name) @def
        (type_declaration . (type_spec name: (_) @name)) @def
        (type_declaration . (type_alias name: (_) @name)) @def
        (var_declaration (var_spec name: (_) @name)) @value
        {leads("comment")}""",
    "rust": f"""
        {
        named(
            "function_item struct_item enum_item union_item trait_item mod_item macro_definition type_item "
            "function_signature_item"
        )
    }
        (impl_item type: (_) @name) @def
        (const_item name: (_) @name) @value
        (static_item name: (_) @name) @value
        {leads("line_comment block_comment attribute_item inner_attribute_item")}""",
    "java": f"""
        {
        named(
            "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
            "method_declaration constructor_declaration compact_constructor_declaration"
        )
    }
        {unnamed("static_initializer")}
        {leads("line_comment block_comment")}""",
    "c": _C,
    "cpp": _CPP,
    "csharp": f"""
        {
        named(
            "namespace_declaration class_declaration interface_declaration struct_declaration enum_declaration "
            "record_declaration delegate_declaration method_declaration constructor_declaration "
            "destructor_declaration property_declaration event_declaration local_function_statement"
        )
    }
        (operator_declaration operator: (_) @name) @def
        {unnamed("indexer_declaration conversion_operator_declaration")}
        {leads("comment attribute_list preproc_region")}""",
    "ruby": f"""
        {named("class module method")}
        (singleton_method object: (_) @owner name: (_) @name) @def
        {unnamed("singleton_class")}
        (call method: (identifier) @call arguments: (argument_list . (_) @name) block: (_)
          (#match? @call "^(describe|context|it|specify|test|namespace|task|shared_examples|feature|scenario)$")) @def
        (call receiver: (_) @name method: (identifier) @call block: (_) (#match? @call "^(class|module)_eval$")) @def
        (assignment left: (constant) @name) @value
        {leads("comment")}""",
    "php": f"""
        {
        named(
            "class_declaration interface_declaration trait_declaration enum_declaration method_declaration "
            "function_definition"
        )
    }
        (namespace_definition name: (_) @name body: (_)) @def
        {leads("comment attribute_list")}""",
    "kotlin": f"""
        {named("class_declaration object_declaration function_declaration")}
        (property_declaration (variable_declaration . (identifier) @name)) @def
        (type_alias type: (_) @name) @def
        {unnamed("companion_object secondary_constructor anonymous_initializer")}
        {leads("line_comment block_comment")}""",
    "swift": f"""
        {
        named(
            "class_declaration protocol_declaration function_declaration protocol_function_declaration "
            "typealias_declaration"
        )
    }
        (property_declaration name: (_) @name computed_value: (_)) @def
        (init_declaration "init" @name) @def
        (deinit_declaration "deinit" @name) @def
        (subscript_declaration "subscript" @name) @def
        {leads("comment multiline_comment")}""",
    "scala": f"""
        {
        named(
            "class_definition object_definition trait_definition enum_definition function_definition "
            "function_declaration type_definition"
        )
    }
        {unnamed("given_definition extension_definition")}
        (val_definition pattern: (_) @name) @value
        {leads("comment block_comment annotation")}""",
    "lua": f"""
        {named("function_declaration")}
        (assignment_statement (variable_list . (_) @name) (expression_list . (function_definition))) @def
        {leads("comment")}""",
    "bash": f"{named('function_definition')}\n{leads('comment')}",
    "css": f"""
        {named("rule_set", "(selectors)")}
        {named("keyframes_statement", "(keyframes_name)")}
        {unnamed("media_statement supports_statement")}
        {leads("comment")}""",
    "haskell": f"""
        (declarations [(function name: (_) @name) (signature name: (_) @name) (bind name: (_) @name)] @def)
        (class_declarations [(function name: (_) @name) (signature name: (_) @name)] @def)
        (instance_declarations [(function name: (_) @name) (bind name: (_) @name)] @def)
        {named("data_type newtype class type_synonym")}
        (instance name: (_) @owner patterns: (_) @name) @def
        {leads("comment haddock pragma")}""",
    "elixir": """
        (call target: (identifier) @call (arguments . (_) @name)
          (#match? @call "^(defp?|defmacrop?|defmodule|defprotocol|defimpl|defdelegate|defguardp?|test|describe)$")
        ) @def
        (comment) @lead
        (unary_operator operator: "@" operand: (call target: (identifier) @at)
          (#match? @at "^(doc|spec|impl|deprecated|since|tag)$")) @lead""",
    "zig": f"""
        {named("function_declaration")}
        (source_file (variable_declaration . (identifier) @name) @def)
        ([(struct_declaration) (union_declaration) (enum_declaration) (opaque_declaration)]
          (variable_declaration . (identifier) @name) @def)
        (test_declaration . (_) @name (block)) @def
        {leads("comment")}""",
    "dart": f"""
        {named("class_definition extension_declaration enum_declaration")}
        (mixin_declaration (identifier) @name) @def
        ((function_signature name: (_) @name) @def . (function_body) @end)
        ((method_signature (_ name: (_) @name)) @def . (function_body) @end)
        {leads("documentation_comment comment annotation")}""",
    "julia": f"""
        {named("module_definition")}
        {named("function_definition macro_definition", "(signature)")}
        {named("struct_definition abstract_definition", "(type_head)")}
        (assignment . (call_expression) @name) @def
        {leads("line_comment block_comment string_literal")}""",
    "powershell": f"""
        (function_statement (function_name) @name) @def
        (class_statement . (simple_name) @name) @def
        (class_method_definition (simple_name) @name) @def
        {leads("comment")}""",
    "objc": f"""
        {named("class_interface class_implementation protocol_declaration", ". (identifier)")}
        {named("method_definition", "(identifier)")}
        {_C}""",
    "matlab": f"{named('function_definition class_definition')}\n{leads('comment')}",
    "hcl": f"""
        (body (block (identifier) @owner . [(string_lit) (identifier)]* @name . (block_start)) @def)
        {leads("comment")}""",
    "make": f"(rule (targets) @name) @def\n{leads('comment')}",
    "nix": f"{named('binding', '(attrpath)')}\n{leads('comment')}",
    "json": named("pair", "key: (_)"),
    "toml": f"""
        (table . (_) @name) @def
        (table_array_element . (_) @name) @def
        {leads("comment")}""",
    "yaml": f"{named('block_mapping_pair', 'key: (_)')}\n{leads('comment')}",
}
