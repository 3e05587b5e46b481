"""GPT-2 (Radford et al. 2019): OpenAI GPT that normalises what a sub-layer reads.

In a Hugging Face folder (`GPT2Model`) tensors lie as OpenAI GPT's; one normalisation follows the
last block. One token, <|endoftext|>, divides documents: it begins and ends texts here.
"""

from experiments.beyond.gpt.names import OPENAI_GPT, OpenAIGPT
from official_bert.checkpoints.member import POSITIONS

# Fields that make a `BertConfig` GPT-2; sizes and rates apart.
GPT2 = {**OPENAI_GPT, "norm_first": True}
# Fields that say how attention is computed, and the one value that is computed here.
_ATTENTION = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False}


class Gpt2(OpenAIGPT):
    name = "gpt2"
    classes = "GPT2"
    tokenizer = "tokenizer_json"
    sign = r"wte\."
    anchor = "wte.weight"
    rank = 0
    shape = GPT2
    names = {
        "wte.weight": "bert.embeddings.word_embeddings.weight",
        "lm_head.weight": "cls.predictions.decoder.weight",
        "wpe.weight": POSITIONS,
        "ln_f.weight": "bert.encoder.LayerNorm.weight",
        "ln_f.bias": "bert.encoder.LayerNorm.bias",
    }

    def read(self, fields):
        for name, computed in _ATTENTION.items():
            if fields.get(name, computed) is not computed:
                raise ValueError(f"{name} {fields[name]}, only {computed} is read")
        ours = super().read(fields)
        inner = fields.get("n_inner") or ours["intermediate_size"]
        act = fields.get("activation_function", "gelu_new")
        return {**ours, "hidden_act": act, "intermediate_size": inner}

    def their_config(self, fields, config):
        theirs = super().their_config(fields, config)
        for of_gpt in ("afn", "n_special"):
            del theirs[of_gpt]
        return {
            **theirs,
            "activation_function": fields["hidden_act"],
            "n_inner": config.intermediate_size,
            "bos_token_id": config.vocab_size - 1,
            "eos_token_id": config.vocab_size - 1,
        }

    def _added(self, fields):
        return 0

    def fits(self, config, algorithm):
        return config.value("norm_first")

    def needed(self, config, objectives):
        free = ("hidden_act", "gelu_form", "intermediate_size")
        needed = super().needed(config, objectives)
        return {name: value for name, value in needed.items() if name not in free}


MEMBER = Gpt2()
